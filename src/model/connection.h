/* SPDX-License-Identifier: MIT
 *
 * One connection of a reactor: a descriptor and the session on it, with what
 * moves bytes between the two. Private to model/.
 */
#pragma once

#include "model/wheel.h"
#include "session/session.h"

struct model_reactor;

/* An element of the reactors' table; zeroed is "no connection". */
struct model_connection {
    struct session session;
    struct model_wheel_node timer;
    _Atomic(struct model_reactor *) owner; /* NULL: no connection. Set and cleared by the owner
                                              only; others merely compare it with themselves */
    uint32_t watched;                      /* the events asked for; 0: not in the epoll set yet */
};

/* Accepts from a listener: a descriptor, -EAGAIN when none waits, or another
 * -errno (told in the error log), after which accepting should pause. */
int model_connection_accept(struct model_reactor *r, int listener_fd,
                            struct session_peer *ret_peer);

/* Starts a session on an accepted descriptor, already counted in `live`, and
 * serves what is there. */
void model_connection_begin(struct model_reactor *r, int fd, struct session_peer peer);

/* The same, but all it will hear is 503: nobody is free to serve it. */
void model_connection_refuse(struct model_reactor *r, int fd, struct session_peer peer);

/* Acts on what epoll told. */
void model_connection_event(struct model_reactor *r, struct model_connection *c, uint32_t events);

/* A node of the wheel has fired. */
void model_connection_expire(struct model_reactor *r, struct model_wheel_node *node);

void model_connection_close(struct model_reactor *r, struct model_connection *c);
