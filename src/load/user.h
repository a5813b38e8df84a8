/* SPDX-License-Identifier: MIT
 *
 * One emulated user: it asks, waits for the whole answer, thinks, and asks again,
 * on one connection that it keeps. And the thread that it belongs to.
 *
 * A user is some 300 bytes; what has come of a head that is not whole is the only
 * other memory it holds.
 */
#pragma once

#include "http/response.h"
#include "load/heap.h"
#include "load/recall.h"
#include "load/schedule.h"
#include "load/tally.h"
#include "os/clock.h"

#include <pthread.h>
#include <stdatomic.h>

/* A request that is under way, or about to be. */
struct load_asked {
    uint64_t due_ns;  /* when it should have begun */
    uint64_t sent_ns; /* its first byte went to the kernel; 0: none has */
    uint32_t target;
    bool again;   /* on a second connection, as the server had closed the first */
    bool counted; /* of a number of requests: one of them */
};

enum load_link { LOAD_LINK_NONE, LOAD_LINK_CONNECTING, LOAD_LINK_OPEN };

enum load_mood {
    LOAD_IDLE,     /* has nothing to do: too many for the step, or all has been asked */
    LOAD_THINKING, /* in the heap */
    LOAD_AWAY,     /* in the heap too, after a failure: it could not ask */
    LOAD_FREE,     /* of the open loop: in the ring, to be given a request */
    LOAD_ASKING
};

struct load_user {
    struct load_random random;
    uint64_t due_ns;        /* in the heap: when; idle: since when; paced: of the latest request */
    uint64_t connect_ns;    /* when the connection was begun */
    uint64_t first_byte_ns; /* of the answer at hand */
    uint64_t body_hash;
    struct http_response response;
    char *tail; /* of a head that is not whole */
    uint32_t tail_len;
    int fd;
    uint32_t number;    /* in its thread */
    uint32_t global;    /* among all users of all threads and shards */
    uint32_t origin;    /* that it is connected to */
    uint32_t sent_part; /* bytes of the request behind the sent ones that are gone */
    uint16_t first;     /* of `asked`, a ring of plan->pipeline */
    uint16_t asked_count, sent_count;
    uint8_t link;     /* enum load_link */
    uint8_t mood;     /* enum load_mood */
    uint8_t failures; /* in a row */
    bool answered;    /* this connection has been */
    bool began;       /* bytes of the answer at hand have come */
    bool in_body;
    struct load_asked asked[];
};

/* What all threads of a run share. */
struct load_shared {
    const struct load_plan *plan;
    struct load_choice choice;
    uint64_t from_ns; /* when the first step begins */
    int64_t from_unix_ns;
    uint64_t requests;            /* of each step, of this shard; 0: by duration */
    _Atomic uint64_t *first_body; /* of each target, to verify; 0: none has come */
    struct load_turnstile {
        _Atomic uint64_t asked, ended; /* of `requests` */
        _Atomic uint64_t over_ns;      /* when the last has ended; 0: not yet */
    } * turnstile;                     /* of each step */
    atomic_int stop;                   /* 1: as soon as what is under way has ended; 2: at once */
    atomic_uint running;               /* threads */
    int main_fd;                       /* an eventfd: a step was handed over, a thread has ended */
    int *thread_fds;                   /* eventfds */
    pthread_mutex_t lock;              /* of the two lists */
    struct load_slice *slices;
    struct load_portion *portions;
};

enum load_phase { LOAD_PHASE_WAIT, LOAD_PHASE_WARM, LOAD_PHASE_MEASURE, LOAD_PHASE_DRAIN };

struct load_thread {
    const struct load_plan *plan;
    struct load_shared *shared;
    unsigned index;
    int error; /* -errno that ended it; 0 */
    int epoll_fd;
    pthread_t id;
    uint64_t now_ns; /* as last read */

    enum load_phase phase;
    size_t step;
    uint64_t step_ns, phase_end_ns; /* when the step began; when the phase ends */
    uint64_t edge_ns;               /* the next end of a phase or of a second */
    uint64_t measured_from_ns;
    int64_t thought_ns, away_ns; /* sums, less what lies outside of the measured time */
    uint64_t cpu_user_ns, cpu_system_ns;

    char *users;
    size_t user_size;
    uint32_t user_count, active; /* active: those that this step has */
    struct load_heap heap;
    uint32_t *free_ring; /* open loop; user_count places */
    uint32_t free_first, free_count;
    struct load_arrivals arrivals;
    bool has_arrivals;

    struct load_tally tally;
    struct load_recall recall;
    char *buffer; /* LOAD_BUFFER_SIZE behind HTTP_RESPONSE_HEAD_MAX */
    uint64_t sweep_ns, sweep_gap_ns;
    uint32_t sweep_at;
};

enum { LOAD_BUFFER_SIZE = 256 * 1024 };

static inline struct load_user *load_user_at(const struct load_thread *thread, uint32_t number)
{
    return (struct load_user *)(void *)(thread->users + number * thread->user_size);
}

/* Begins what is due at `due_ns`: asks as many requests as the plan has under way. */
void load_user_begin(struct load_thread *thread, struct load_user *user, uint64_t due_ns);

/* Nothing of it is under way: it thinks, waits for its turn, or is idle. */
void load_user_rest(struct load_thread *thread, struct load_user *user);

/* What it waited for in the heap has come. */
void load_user_wake(struct load_thread *thread, struct load_user *user);

/* Something is known of its connection: EPOLL bits. */
void load_user_event(struct load_thread *thread, struct load_user *user, unsigned events);

/* Ends what has taken too long; thread->now_ns says what time it is. */
void load_user_check_limits(struct load_thread *thread, struct load_user *user);

/* ---- its thread (load/thread.c) ---- */

/* Makes what the thread needs, before it is started; 0 or -errno. Ends with load_thread_done. */
MUST_USE int load_thread_init(struct load_thread *thread, struct load_shared *shared,
                              unsigned index);
void load_thread_done(struct load_thread *thread);

/* Runs all steps; for pthread_create. What goes wrong is in thread->error. */
void *load_thread_run(void *thread);

/* The edge of a phase or a second has come. */
void load_thread_edge(struct load_thread *thread);

/* Reads the clock, and sees to the edge if that has come. */
static inline void load_thread_look(struct load_thread *thread)
{
    thread->now_ns = os_clock_now_ns();
    if (thread->now_ns >= thread->edge_ns)
        load_thread_edge(thread);
}

/* Whether one more request may begin now, and is one of a number that is `ret_counted`. */
bool load_thread_admits(struct load_thread *thread, bool *ret_counted);

/* One of those has ended. */
void load_thread_ended(struct load_thread *thread);

/* ---- its connection (load/link.c) ---- */

/* Sends what has not been sent, over a connection that it makes where there is none. */
void load_link_transmit(struct load_thread *thread, struct load_user *user);

/* Closes the connection, with whatever is known of it. */
void load_link_close(struct load_user *user);

/* Closes one that is not kept, after its last answer: a part of the cycle of a user who asks, and
 * who goes on when that is done. */
void load_link_finish(struct load_thread *thread, struct load_user *user);

/* The connection is of no use any more, by `error`: -errno, or 0 as the peer has closed it. */
void load_link_lost(struct load_thread *thread, struct load_user *user, int error);

/* All that is under way has failed; the connection is closed. */
void load_link_fail(struct load_thread *thread, struct load_user *user, enum load_error error);

/* Connected, or not. */
void load_link_connected(struct load_thread *thread, struct load_user *user);
