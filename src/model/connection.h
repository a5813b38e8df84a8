/* SPDX-License-Identifier: MIT
 *
 * One connection of a reactor: a descriptor, the session on it, and the functions that move bytes
 * between the two. Private to model/.
 */
#pragma once

#include "model/reactor.h"
#include "model/wheel.h"
#include "session/session.h"

#include <stddef.h>
#include <sys/epoll.h>

/* An element of the reactors' table; zeroed is "no connection". */
struct model_connection {
    struct session session; /* first: a pointer to it points to the connection */
    struct model_wheel_node timer;
    _Atomic(const void *) owner; /* a reactor, or an address of poolthread.h's. NULL: no connection,
                                    or one on its way to another loop. Only the owner sets and
                                    clears it; other threads compare it with themselves */
    uint32_t watched;            /* the events that epoll reports; 0: not in the epoll set */
    uint64_t queued_ns;          /* threadpool.c's own: since when it waits for a thread */
    uint32_t stays_until;        /* balance.c's own: a window's number */
};

enum {
    MODEL_INPUT_EVENTS = EPOLLIN | EPOLLRDHUP,
    MODEL_LOST_EVENTS = EPOLLERR | EPOLLHUP /* are always reported */
};

/* The events to wait for when the session wants `want`. */
static inline uint32_t model_connection_events(const struct session *s, unsigned want)
{
    if (__builtin_expect(want == SESSION_READ, 1))
        return MODEL_INPUT_EVENTS;
    if (want == SESSION_WAIT)
        return MODEL_LOST_EVENTS;
    bool reads = want & SESSION_READ && session_room(s) > 0;
    return EPOLLOUT | (reads ? MODEL_INPUT_EVENTS : 0);
}

static inline struct model_connection *model_connection_of(struct model_wheel_node *timer)
{
    return (struct model_connection *)((char *)timer - offsetof(struct model_connection, timer));
}

/* Starts a session on an accepted descriptor, already counted in `live`, and serves what has
 * arrived. */
void model_connection_begin(struct model_reactor *r, int fd, struct session_origin origin);

/* The same, but the only answer is 503: nothing is free to serve the connection. */
void model_connection_refuse(struct model_reactor *r, int fd, struct session_origin origin);

/* Makes epoll report `events`, and no others, as events of this kind. False when the kernel cannot.
 * The connection's owner calls it, in any thread. */
bool model_connection_watch(struct model_reactor *r, struct model_connection *c,
                            enum model_event kind, uint32_t events);

/* Acts on events that epoll has reported. */
void model_connection_event(struct model_reactor *r, struct model_connection *c, uint32_t events);

/* Continues with a connection whose answer is ready, or that a thread of the pool has served, after
 * epoll has reported its events. */
void model_connection_resume(struct model_reactor *r, struct model_connection *c);

/* A node of the wheel has fired. */
void model_connection_expire(struct model_reactor *r, struct model_wheel_node *node);

/* The server drains: the session announces it to the client, where its protocol can. */
void model_connection_drain(struct model_reactor *r, struct model_connection *c);

void model_connection_close(struct model_reactor *r, struct model_connection *c);

/* Hands a connection over to another reactor, which counts it from now on. False when the
 * connection is not between requests, or the other reactor takes none. Then nothing has changed,
 * except that the connection is closed where memory is short. */
bool model_connection_hand_over(struct model_reactor *r, struct model_connection *c,
                                struct model_reactor *to);

/* Serves a connection that another reactor has handed over, already counted in `live`. */
void model_connection_adopt(struct model_reactor *r, int fd);
