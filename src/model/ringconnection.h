/* SPDX-License-Identifier: MIT
 *
 * One connection of a ring's loop: a descriptor, the session on it, and what
 * the kernel has been asked to do for them. It ends when nothing is under way
 * any more, for the kernel may write and read until then.
 */
#pragma once

#include "model/ringearly.h"
#include "model/wheel.h"
#include "session/session.h"

#include <liburing.h>

struct model_ringloop;

struct model_ringconnection {
    struct session session;
    struct model_wheel_node timer;
    struct model_ringearly *early;          /* NULL: nothing */
    int fd;                                 /* -1: no connection */
    unsigned next;                          /* free one, where this is free */
    bool receiving, sending, awaiting_room; /* under way */
    bool ended;                             /* the input's end has come, early */
    bool kept;                              /* it has had an answer and goes on */
    bool dispensable; /* closes if it is still between requests when receiving ends */
    bool leaving;     /* closes when nothing is under way any more */
};

/* Starts a session on an accepted descriptor, already counted in `live`. */
void model_ringconnection_begin(struct model_ringloop *loop, int fd);

/* Acts on a completion. */
void model_ringconnection_received(struct model_ringloop *loop, struct model_ringconnection *c,
                                   const struct io_uring_cqe *done);
void model_ringconnection_sent(struct model_ringloop *loop, struct model_ringconnection *c,
                               int result);
void model_ringconnection_has_room(struct model_ringloop *loop, struct model_ringconnection *c);

/* A node of the wheel has fired. */
void model_ringconnection_expire(struct model_ringloop *loop, struct model_wheel_node *node);

/* Closes it if it is between requests, and no request has come meanwhile. */
void model_ringconnection_close_idle(struct model_ringloop *loop, struct model_ringconnection *c);

/* Closes it, as soon as nothing is under way. */
void model_ringconnection_close(struct model_ringloop *loop, struct model_ringconnection *c);
