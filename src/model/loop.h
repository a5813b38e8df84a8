/* SPDX-License-Identifier: MIT
 *
 * The common part of both event loops: one waits for readiness (model/reactor.h), the other for
 * completions (model/ringloop.h). It holds a loop's place among the loops of the process, its clock
 * and timers, the connections that other loops hand over, and the phases of a drain. Each kind of
 * loop embeds this struct as its first member. The functions of struct model_loop_kind are called
 * for a connection or for a phase, never for a request.
 *
 * It deliberately does not wait or move bytes: each kind of loop does both in its own way.
 */
#pragma once

#include "base/check.h"
#include "model/idle.h"
#include "model/wheel.h"
#include "os/socket.h"
#include "session/thread.h"
#include "task/task.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct model_loop;
struct server;

enum {
    LOOP_ACCEPTS = 16,            /* connections accepted before other work gets its turn */
    LOOP_RESUMES = 64,            /* answers that became ready, likewise */
    LOOP_HANDED_MAX = 256,        /* connections on their way to one loop */
    LOOP_TURN_BYTES = 2048 * 1024 /* sent to one connection before other work gets its turn */
};

/* A connection on its way from one loop to another. */
struct model_handed {
    int fd;
    bool moved; /* it has a session, which the sender served; `origin` is not set */
    struct session_origin origin;
};

/* The operations that each kind of loop defines. The loop's thread calls them. */
struct model_loop_kind {
    size_t bytes; /* of the struct that embeds the loop */
    /* Serves an accepted connection, which is already counted in `live`. */
    void (*begin)(struct model_loop *loop, int fd, struct session_origin origin);
    /* Serves a connection that has a session. NULL: loops of this kind never send one. */
    void (*adopt)(struct model_loop *loop, int fd);
    /* An answer of a session is ready, as session_thread_next_ready reports it. */
    void (*resume)(struct model_loop *loop, struct session *s);
    /* Accepting cannot continue until model_loop_may_listen. NULL: nothing to do. */
    void (*pause)(struct model_loop *loop);
    /* The master passes no more connections. NULL: the master passes none to loops of this kind. */
    void (*end_passing)(struct model_loop *loop);
    /* Once for each turn of a drain: closes the loop's listeners, as soon as it can. */
    void (*drain)(struct model_loop *loop, bool first_turn);
    /* In a drain: whether more connections may still arrive. */
    bool (*still_accepts)(const struct model_loop *loop);
    /* Closes the connections that are between requests. */
    void (*close_idle)(struct model_loop *loop);
    /* Ends every connection. Called again after a pause while any is left. */
    void (*close_all)(struct model_loop *loop);
    /* A signal has arrived, and the server has acted on it. NULL: nothing to do. */
    void (*signal)(struct model_loop *loop, int signal);
};

/* Written by the loop's own thread, except where a comment says otherwise. */
struct model_loop {
    const struct model_loop_kind *kind;
    struct server *server;
    struct model_loop *first; /* of an array of `count` structs of kind->bytes each */
    unsigned count;
    unsigned index;               /* in the array */
    unsigned next_choice;         /* the next loop whose connections are counted for a new one */
    unsigned connections_max;     /* 0 in some, where there are more loops than connections */
    int wake_fd;                  /* an eventfd; any thread writes to it */
    size_t files_max;             /* a connection's descriptor is below this */
    bool draining;                /* this loop has seen that the phase is no longer RUNNING */
    uint64_t listen_again_ns;     /* accepting pauses until then; 0: no pause */
    uint64_t space_again_ns;      /* while all loops are full, none looks for space until then */
    uint64_t drain_idle_until_ns; /* then a drain closes idle connections; 0: it has */
    uint64_t drain_until_ns;      /* then a drain ends all connections */
    uint64_t now_ns;
    struct session_thread thread;
    struct task_home home; /* of the thread; other threads write it under the pool's lock */
    struct model_wheel wheel;
    struct model_idle idle;

    /* Written by any thread. */
    _Alignas(CACHE_LINE) _Atomic unsigned live; /* connections owned, or on their way here */
    _Atomic bool space_wanted;                  /* another loop found no space of its own */
    pthread_mutex_t handed_lock;                /* guards what is below */
    bool left;                                  /* the loop takes no more connections */
    unsigned handed_count;
    struct model_handed handed[LOOP_HANDED_MAX];
};

/* The loop with this index in the same process. */
static inline struct model_loop *model_loop_at(const struct model_loop *loop, unsigned index)
{
    return (struct model_loop *)(void *)((char *)loop->first + index * loop->kind->bytes);
}

/* ---- making ---- */

/* `count` zeroed loops of this kind, initialised but for wake_fd and thread; NULL without memory.
 * The caller frees them. */
struct model_loop *model_loops_new(struct server *server, unsigned count,
                                   const struct model_loop_kind *kind);

/* Makes the eventfd, and starts what the loop's sessions share. 0 or -errno. */
MUST_USE int model_loop_open(struct model_loop *loop);
void model_loop_close(struct model_loop *loop);

/* Runs `serve` for each loop, number 0 in the calling thread and the others in threads of their
 * own, and returns when all have ended: 0, or the first error. One loop that fails stops the
 * others. */
MUST_USE int model_loops_serve(struct model_loop *first, int (*serve)(struct model_loop *loop));

/* ---- the loop's own thread ---- */

/* Acts on the server's phase. False: the loop is finished. */
bool model_loop_continues(struct model_loop *loop);

/* The loop ends early, with an error. */
void model_loop_fail(struct model_loop *loop);

/* The time at which the loop has something to do even when no event arrives; UINT64_MAX: never. */
uint64_t model_loop_due_ns(struct model_loop *loop);

/* Around a wait: a thread that sleeps must not keep other threads from reclaiming entries. */
void model_loop_rest(struct model_loop *loop);
void model_loop_resume(struct model_loop *loop);

/* Reads the clock once. All session calls of the turn use this time. */
void model_loop_tick(struct model_loop *loop);

/* Whether the loop accepts now. It does so too when every loop has as many connections as it can
 * serve: a client that waits then is the reason to look for space. Ends a pause that is over. */
bool model_loop_may_listen(struct model_loop *loop);

/* The master passes connections to this loop. */
bool model_loop_is_passed(const struct model_loop *loop);

/* Descriptors of the loop's listeners, server->listener_count of them; -1: none. */
int *model_loop_listeners(const struct model_loop *loop);

/* Accepts connections that wait, LOOP_ACCEPTS at most, and places each. At least one waits. When
 * all loops are full, a connection that is idle makes space. True: more may wait. */
bool model_loop_accept(struct model_loop *loop, int listener_fd);

/* Serves a connection that the kernel has accepted on its own from a listener of this loop, here or
 * in the loop that has the fewest. */
void model_loop_place(struct model_loop *loop, int listener_fd, int fd);

/* The address has one connection less. For a connection that ends without session_close. */
void model_loop_release_address(const struct model_loop *loop, const struct session_peer *peer);

/* Accepting has failed with this errno: reports it, and pauses. */
void model_loop_cannot_accept(struct model_loop *loop, int error);

/* Accepts, during a drain, what waits on a listener that is about to be closed: the kernel would
 * reset those connections. Stops at `until_ns` where connections arrive faster. */
void model_loop_accept_rest(struct model_loop *loop, int listener_fd, uint64_t until_ns);

/* Acts on the wake-up: empties the eventfd, serves what other loops have handed over, and continues
 * with sessions whose answers were pending. */
void model_loop_woken(struct model_loop *loop);

/* Reads and acts on the signals that have arrived. */
void model_loop_read_signals(struct model_loop *loop);

/* A connection is closed, or another loop has it now. */
void model_loop_count_out(struct model_loop *loop);

/* ---- any thread ---- */

/* Hands a connection over to a loop, which counts it in `live` from now on. False: the loop takes
 * none, or none now, and the connection stays with the caller. */
MUST_USE bool model_loop_hand_over(struct model_loop *to, struct model_handed handed);

/* A connection that is counted in `live` but served outside the loop is closed. */
void model_loop_ended(struct model_loop *loop);
