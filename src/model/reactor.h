/* SPDX-License-Identifier: MIT
 *
 * An event loop: one thread, one epoll set, the connections that it owns, and
 * the sessions on them. `epoll` is one of these, `percore` one for each core.
 *
 * For a request on a warm connection the loop makes two system calls, recv and
 * send, and a share of one epoll_wait.
 */
#pragma once

#include "base/check.h"
#include "model/balance.h"
#include "model/wheel.h"
#include "session/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct model_connection;
struct server;

enum {
    REACTOR_EVENTS = 256,    /* taken from the kernel at a time */
    REACTOR_ACCEPTS = 64,    /* accepted before others get their turn */
    REACTOR_HANDED_MAX = 256 /* connections on their way to another loop */
};

/* A connection that one reactor accepted, or has served until now, and another will serve. */
struct model_handed {
    int fd;
    bool moved; /* its session lives; `peer` is not set */
    struct session_peer peer;
};

struct model_reactor;

/* What an event of the loop's epoll set is about. */
enum model_event {
    MODEL_EVENT_CONNECTION,
    MODEL_EVENT_PLACED, /* a connection that the placement watches: `ready` */
    MODEL_EVENT_LISTENER,
    MODEL_EVENT_WAKE,
    MODEL_EVENT_SIGNAL
};

/* The event's data: the kind above, a descriptor below. */
static inline uint64_t model_event_data(enum model_event kind, int fd)
{
    return (uint64_t)kind << 32 | (uint32_t)fd;
}

/* How a model serves its connections elsewhere than in the loop that accepts
 * them. The loop's thread makes these calls; any but `place` may be NULL. */
struct model_placement {
    /* It forks. A child holds the loop's connections open, and in the epoll set, however soon it
     * closes them: the loop takes them out before it closes them. */
    bool forks;
    /* While there are connections, the loop turns at least so often; 0: when it is woken. */
    uint64_t turn_ns;
    /* Takes an accepted connection, which counts in `live` until model_reactor_ended.
     * False: nobody can serve it; the loop answers 503. */
    bool (*place)(struct model_reactor *r, int fd, struct session_peer peer);
    /* A drain begins: answers are to say that the connection closes. */
    void (*drain)(struct model_reactor *r);
    /* epoll has told of MODEL_EVENT_PLACED for this descriptor. */
    void (*ready)(struct model_reactor *r, int fd);
    /* All that epoll told of in one turn has been acted on. */
    void (*turned)(struct model_reactor *r);
    /* The timer of a connection has fired; without this hook they are all the loop's. */
    void (*due)(struct model_reactor *r, struct model_wheel_node *timer);
    /* A drain has waited long enough: end connections that are between requests. */
    void (*close_idle)(struct model_reactor *r);
    /* End every connection; called again, not too often, as long as there are any. */
    void (*close_all)(struct model_reactor *r);
    /* A signal has come: SIGCHLD, or one that the server has acted upon. */
    void (*signal)(struct model_reactor *r, int signal);
};

/* Written by its own thread, but for the parts that say otherwise. */
struct model_reactor {
    struct server *server;
    const struct model_placement *placement; /* NULL: the loop serves what it accepts */
    void *place;                             /* the placement's own */
    struct model_reactor *all;               /* the process's reactors, an array */
    unsigned count;
    unsigned index; /* among them */
    unsigned connections_max;
    struct model_connection *table; /* indexed by descriptor; shared, each element has one owner */
    size_t table_size;
    int epoll_fd;
    int wake_fd;              /* an eventfd; written by any thread */
    bool listening;           /* the listeners are in the epoll set */
    bool retiring;            /* the phase is not RUNNING any more, and this loop knows */
    uint64_t listen_again_ns; /* after running out of descriptors; 0: not waiting */
    uint64_t drain_idle_ns;   /* until when connections between requests are left alone */
    uint64_t drain_end_ns;
    uint64_t now_ns;
    struct session_thread worker;
    struct model_wheel wheel;
    struct model_balance balance;
    char *input; /* SESSION_READ_MAX bytes, for one recv at a time */
    int status;  /* what the loop ended with; read after the join */

    /* Written by any thread. */
    _Alignas(CACHE_LINE) _Atomic unsigned live; /* connections owned, or on their way here */
    pthread_mutex_t handed_lock;                /* guards what is below */
    bool left;                                  /* it takes no more */
    unsigned handed_count;
    struct model_handed handed[REACTOR_HANDED_MAX];
};

/* Makes the `count` reactors of a server, with one table of connections. `place`
 * is for the placement, which may be NULL. 0 or -errno, with *ret_reactors for
 * model_reactors_free. */
MUST_USE int model_reactors_new(struct server *server, unsigned count,
                                const struct model_placement *placement, void *place,
                                struct model_reactor **ret_reactors);
void model_reactors_free(struct model_reactor *reactors);

/* Has every reactor look at the server's phase. Any thread. */
void model_reactors_wake(const struct model_reactor *reactors);

/* A full loop has lost a connection: what waits for the others may be handed to it. Its own
 * thread. */
void model_reactor_has_room(struct model_reactor *reactor);

/* Gives a connection to a reactor, which counts it in `live` from now on. False when it takes none,
 * or none now. Any thread. */
MUST_USE bool model_reactor_hand(struct model_reactor *to, struct model_handed handed);

/* A connection that was placed elsewhere is closed. Any thread. */
void model_reactor_ended(struct model_reactor *reactor);

/* Runs one reactor until the server stops and its connections are gone. Keeps the
 * outcome in `status`. */
void model_reactor_run(struct model_reactor *reactor);
