/* SPDX-License-Identifier: MIT
 *
 * One connection of a reactor: a descriptor and the session on it, with what
 * moves bytes between the two. Private to model/.
 */
#pragma once

#include "model/reactor.h"
#include "model/wheel.h"
#include "session/session.h"

#include <stddef.h>

/* An element of the reactors' table; zeroed is "no connection". */
struct model_connection {
    struct session session;
    struct model_wheel_node timer;
    _Atomic(const void *) owner; /* a reactor, or who else serves it (crew.c); NULL: no connection,
                                    or on its way to another loop. Set and cleared by the owner
                                    only; others merely compare it with themselves */
    uint32_t watched;            /* the events asked for; 0: not in the epoll set */
    uint64_t queued_ns;          /* crew.c's own: since when it waits for a thread */
    uint32_t stays_until;        /* balance.c's own: a window's number */
};

static inline struct model_connection *model_connection_of(struct model_wheel_node *timer)
{
    return (struct model_connection *)((char *)timer - offsetof(struct model_connection, timer));
}

/* Accepts from a listener, or from the server's intake: a descriptor, -EAGAIN when none waits,
 * -EPIPE when none will come any more, or another -errno (told in the error log), after which
 * accepting should pause. */
int model_connection_accept(struct model_reactor *r, int listener_fd,
                            struct session_peer *ret_peer);

/* Starts a session on an accepted descriptor, already counted in `live`, and
 * serves what is there. */
void model_connection_begin(struct model_reactor *r, int fd, struct session_peer peer);

/* The same, but all it will hear is 503: nobody is free to serve it. */
void model_connection_refuse(struct model_reactor *r, int fd, struct session_peer peer);

/* Has the kernel report `events`, and those only, as of that kind. False when it cannot. The
 * connection's owner calls it, in any thread. */
bool model_connection_watch(struct model_reactor *r, struct model_connection *c,
                            enum model_event kind, uint32_t events);

/* Acts on what epoll told. */
void model_connection_event(struct model_reactor *r, struct model_connection *c, uint32_t events);

/* Goes on with a connection that others have served, where epoll has told that it may. */
void model_connection_resume(struct model_reactor *r, struct model_connection *c);

/* A node of the wheel has fired. */
void model_connection_expire(struct model_reactor *r, struct model_wheel_node *node);

void model_connection_close(struct model_reactor *r, struct model_connection *c);

/* Has another loop go on with a connection, which is counted there from now on. False when the
 * connection is in the middle of something, or the other loop does not take it: nothing has changed
 * then, unless it had to be closed for want of memory. */
bool model_connection_hand_over(struct model_reactor *r, struct model_connection *c,
                                struct model_reactor *to);

/* Goes on with a connection that another loop has handed over, already counted in `live`. */
void model_connection_adopt(struct model_reactor *r, int fd);
