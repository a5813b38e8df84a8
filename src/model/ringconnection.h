/* SPDX-License-Identifier: MIT
 *
 * One connection of a ring's loop: a descriptor, the session on it, and the operations that the
 * kernel has been asked for. The kernel reads and writes the connection's memory during an
 * operation, so a connection ends only when none is left.
 */
#pragma once

#include "model/ring.h"
#include "model/ringpending.h"
#include "model/wheel.h"
#include "session/session.h"

#include <liburing.h>

struct model_ringloop;

struct model_ringconnection {
    struct session session; /* first: a pointer to it points to the connection */
    struct model_wheel_node timer;
    struct model_ringpending *pending;          /* NULL: none */
    int fd;                                     /* -1: no connection */
    unsigned next;                              /* in the list of free elements */
    bool receiving, sending, awaiting_writable; /* operations that have not completed */
    bool ended;                                 /* the input's end follows `pending` */
    bool early;   /* input has arrived while it was sending: receives once at a time */
    bool patient; /* its last input was short, so it waits for answers: receives repeatedly */
    enum model_ring_way way; /* of the receive that has not completed, or of the last one */
    bool dispensable;        /* close it if it is between requests when receiving ends */
    bool leaving;            /* close it when no operation is left */
};

/* Starts a session on an accepted descriptor, already counted in `live`. */
void model_ringconnection_begin(struct model_ringloop *r, int fd, struct session_origin origin);

/* Act on a completion. */
void model_ringconnection_received(struct model_ringloop *r, struct model_ringconnection *c,
                                   const struct io_uring_cqe *done);
void model_ringconnection_sent(struct model_ringloop *r, struct model_ringconnection *c,
                               int result);
void model_ringconnection_writable(struct model_ringloop *r, struct model_ringconnection *c);

/* An answer of the session is ready. */
void model_ringconnection_resume(struct model_ringloop *r, struct model_ringconnection *c);

/* A node of the wheel has fired. */
void model_ringconnection_expire(struct model_ringloop *r, struct model_wheel_node *node);

/* The server drains: the session announces it to the client, where its protocol can. */
void model_ringconnection_drain(struct model_ringloop *r, struct model_ringconnection *c);

/* Closes it if it is between requests, unless a request arrives before receiving is cancelled. */
void model_ringconnection_close_idle(struct model_ringloop *r, struct model_ringconnection *c);

/* Closes it, as soon as no operation is left. */
void model_ringconnection_close(struct model_ringloop *r, struct model_ringconnection *c);
