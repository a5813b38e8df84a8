/* SPDX-License-Identifier: MIT
 *
 * An event loop over readiness: one thread, one epoll set, the connections that it owns, and the
 * sessions on them. `epoll` is one reactor, `percore` one for each core. `fork`, `thread`, `pool`
 * and `prefork` accept with one, and serve the connections elsewhere (struct model_placement).
 */
#pragma once

#include "base/check.h"
#include "model/balance.h"
#include "model/loop.h"

#include <stdint.h>

struct model_connection;

enum { REACTOR_EVENTS = 256 }; /* read from the kernel in one call */

struct model_reactor;

/* What an event of the epoll set is about. */
enum model_event {
    MODEL_EVENT_CONNECTION,
    MODEL_EVENT_PLACED, /* a connection that the placement watches: `ready` */
    MODEL_EVENT_LISTENER,
    MODEL_EVENT_WAKE,
    MODEL_EVENT_SIGNAL
};

/* The event's data: the kind in the upper half, a descriptor in the lower. */
static inline uint64_t model_reactor_event_data(enum model_event kind, int fd)
{
    return (uint64_t)kind << 32 | (uint32_t)fd;
}

/* How a model serves connections outside the reactor that accepts them. The reactor's thread makes
 * these calls. Each except `place` may be NULL. */
struct model_placement {
    /* The model forks. A child has copies of all descriptors, which keep a connection in the epoll
     * set after the reactor has closed it. So the reactor removes a connection before it closes
     * it. */
    bool forks;
    /* While there are connections, the reactor wakes up at least this often. 0: only on events. */
    uint64_t turn_ns;
    /* Takes an accepted connection, which counts in `live` until model_loop_ended. False: nothing
     * can serve it, and the reactor answers 503. */
    bool (*place)(struct model_reactor *r, int fd, struct session_origin origin);
    /* A drain begins: from now on answers say that the connection closes. The placement has the
     * sessions that it serves announce it (session_drain). */
    void (*drain)(struct model_reactor *r);
    /* epoll has reported MODEL_EVENT_PLACED for this descriptor. */
    void (*ready)(struct model_reactor *r, int fd);
    /* An answer of this connection is ready. NULL: the reactor continues with it. */
    void (*resume)(struct model_reactor *r, struct model_connection *c);
    /* All events of one epoll_wait have been acted on. */
    void (*turned)(struct model_reactor *r);
    /* A connection's timer has fired. Without this function the reactor expires it. */
    void (*due)(struct model_reactor *r, struct model_wheel_node *timer);
    /* Closes the connections that are between requests: a drain has waited long enough. */
    void (*close_idle)(struct model_reactor *r);
    /* Ends every connection. Called again after a pause while any is left. */
    void (*close_all)(struct model_reactor *r);
    /* How idle connections make space. NULL: by the reactor's own way, for what it serves. */
    const struct model_idle_kind *idle;
    /* A signal has arrived: SIGCHLD, or one that the server has acted on. */
    void (*signal)(struct model_reactor *r, int signal);
};

struct model_reactor {
    struct model_loop loop;                  /* first: a pointer to it points to the reactor */
    const struct model_placement *placement; /* NULL: the reactor serves what it accepts */
    void *place;                             /* the placement's own */
    struct model_connection *table; /* by descriptor. All reactors share it; each element has one
                                       owner */
    int epoll_fd;
    bool listening; /* the listeners are in the epoll set */
    struct model_balance balance;
    char *input; /* SESSION_READ_MAX bytes, for one recv at a time */
};

/* The reactor with this index in the same process. */
static inline struct model_reactor *model_reactor_at(const struct model_reactor *r, unsigned index)
{
    return (struct model_reactor *)model_loop_at(&r->loop, index);
}

/* Makes the `count` reactors of a server, with one table of connections. `place` is for the
 * placement, which may be NULL. 0 or -errno, with *ret_reactors for model_reactors_free. */
MUST_USE int model_reactors_new(struct server *server, unsigned count,
                                const struct model_placement *placement, void *place,
                                struct model_reactor **ret_reactors);
void model_reactors_free(struct model_reactor *reactors);

/* Parts of a struct model_idle_kind, for connections whose timers are in the reactor's wheel: `who`
 * is a timer. */
void model_reactor_search_idle(struct model_loop *loop);
void model_reactor_displace(struct model_loop *loop, void *timer);

/* Runs the reactor that begins with `loop` until the server stops and its connections are gone.
 * 0 or -errno. */
MUST_USE int model_reactor_serve(struct model_loop *loop);
