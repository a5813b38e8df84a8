/* SPDX-License-Identifier: MIT
 *
 * Serves one connection with blocking calls, for a thread or a process that has
 * nothing else to do: a request on a warm connection is one recv and one send.
 * The first exchange does not block, as the request is often here already, so
 * that a connection for one request pays for no further call.
 *
 * Deadlines are the socket's own timeouts. They are set anew only where the one
 * in force would let a deadline pass, or was found to be too short.
 */
#pragma once

#include "session/session.h"
#include "session/thread.h"

/* The caller's storage. */
struct model_pump {
    int fd;
    uint64_t drain_idle_ns; /* how long a drain leaves a connection between requests alone */
    struct session session;
    uint64_t now_ns;
    uint64_t receive_timeout_ns; /* in force; UINT64_MAX: none */
    uint64_t leave_ns;           /* when a drain ends the connection; 0: not known yet */
    bool blocking;               /* the descriptor is */
    bool stuck;                  /* the last send was short: the next one waits */

    /* It waits between requests, or did the last time that it waited. Read by whoever ends it. */
    _Atomic bool idle;
};

/* Storage for a connection on `fd`, an accepted descriptor. Whoever gets the
 * pump after this may end it. */
void model_pump_init(struct model_pump *pump, int fd, uint64_t drain_idle_ns);

/* Serves the connection to its end, but for closing the descriptor. The worker is online, and
 * is so again afterwards; `input` holds SESSION_READ_MAX bytes. */
void model_pump_serve(struct model_pump *pump, struct session_thread *worker,
                      struct session_peer peer, char *input);

/* End the connection if it is between requests, or in any case. Any thread, or a
 * signal handler, as long as the descriptor is open; once is enough, whatever
 * the pump is doing. */
void model_pump_end_idle(struct model_pump *pump);
void model_pump_end(struct model_pump *pump);
