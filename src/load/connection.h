/* SPDX-License-Identifier: MIT
 *
 * A user's connection: opened when there is something to send, and kept until the server closes
 * it or announces that it will.
 *
 * A request is sent a second time only after the server has closed a connection on which it had
 * answered before, without a byte of this answer. A server may do that at any time (RFC 9112
 * section 9.3.1), and then no process has read the request.
 */
#pragma once

#include "load/thread.h"

/* Sends the requests that are not sent yet. Connects first where there is no connection. */
void load_connection_transmit(struct load_thread *thread, struct load_user *user);

/* Closes the connection, and resets its state. */
void load_connection_close(struct load_user *user);

/* Closes a connection that is not kept, after its last answer. The time this takes is part of the
 * cycle of a user that sends on. */
void load_connection_finish(struct load_thread *thread, struct load_user *user);

/* Handles the loss of the connection. `error` is -errno, or 0 when the peer has closed it. */
void load_connection_lost(struct load_thread *thread, struct load_user *user, int error);

/* Fails all requests under way with `error`, and closes the connection. */
void load_connection_fail(struct load_thread *thread, struct load_user *user,
                          enum load_error error);

/* Ends the first request under way, without an answer. */
void load_connection_fail_first(struct load_thread *thread, struct load_user *user,
                                enum load_error error);

/* Counts the time that a request has waited for its connection, which can take it now. */
void load_connection_count_ready(struct load_thread *thread, struct load_user *user);

/* Handles the result of connecting. */
void load_connection_connected(struct load_thread *thread, struct load_user *user);
