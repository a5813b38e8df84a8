/* SPDX-License-Identifier: MIT
 *
 * Serves one connection with blocking calls, for a thread or a process that does nothing else. A
 * request on a warm connection costs one recv and one send. The first exchange does not block,
 * because the request has often arrived already: a connection for one request needs no other call.
 *
 * Deadlines are the socket's own timeouts. The pump changes a timeout only when the present one
 * would let a deadline pass, or was too short. A session that announces the end of its connection
 * (session_announces_end) waits with one poll more: a drain must end that wait.
 */
#pragma once

#include "model/idle.h"
#include "session/session.h"
#include "session/thread.h"

/* The caller's storage. */
struct model_pump {
    int fd;
    int drain_fd;           /* readable once a drain has begun */
    uint64_t drain_idle_ns; /* how long a drain keeps a connection between requests open */
    struct session session;
    uint64_t now_ns;
    uint64_t receive_timeout_ns; /* SO_RCVTIMEO; UINT64_MAX: none */
    uint64_t leave_ns;           /* when a drain closes the connection; 0: not known yet */
    bool blocking;               /* the descriptor blocks */
    bool stuck;                  /* the last send was short, so the next one waits */
    bool drained;                /* the session knows that the server drains */

    /* Since when it waits between requests; MODEL_IDLE_NEVER: a request is under way. Any thread
     * reads it. It points to `own_idle_since_ns`, unless the caller has it point to memory that
     * another process shares. */
    _Atomic uint64_t *idle_since_ns, own_idle_since_ns;
};

/* Opens a descriptor that all pumps of a model share. 0 or more, or -errno. */
int model_pump_open_drain(void);

/* Reports through this descriptor that a drain has begun. Sessions that announce the end of their
 * connection then do so at once. Call it after session_shared's `draining` is set. */
void model_pump_report_drain(int drain_fd);

/* Prepares a pump for `fd`, an accepted descriptor. From now on other threads may end it. Borrows
 * `drain_fd`, of model_pump_open_drain, until model_pump_serve returns. */
void model_pump_init(struct model_pump *pump, int fd, int drain_fd, uint64_t drain_idle_ns,
                     uint64_t now_ns);

/* Serves the connection to its end, and does not close the descriptor. `thread` is resumed, not at
 * rest, before and after the call. `input` holds SESSION_READ_MAX bytes. */
void model_pump_serve(struct model_pump *pump, struct session_thread *thread,
                      struct session_origin origin, char *input);

/* End the connection if it is between requests, or in any case. True: it ends. Any thread, or a
 * signal handler, may call them while the descriptor is open. In a drain one call is enough: later
 * the pump itself ends a connection that is between requests. */
bool model_pump_end_idle(struct model_pump *pump);
bool model_pump_end(struct model_pump *pump);
