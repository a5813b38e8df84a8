/* SPDX-License-Identifier: MIT
 *
 * Access-log lines of answers. The line of an answer that is whole in the output buffer is written
 * at once. The line of any other answer waits until its body is sent, so that it reports the bytes
 * really sent.
 *
 * Private to session/.
 */
#pragma once

#include "log/access.h"

struct session_exchange;
struct session_thread;

/* Bytes of a client's address as text. */
enum { SESSION_LINE_PEER_MAX = 46 };

/* A line that waits. Its spans point into `text`, except for the constants of TLS. */
struct session_line {
    struct log_access_line line;
    char text[];
};

/* Logs the answer to `x` now. */
void session_line_log(struct session_exchange *x, unsigned status, uint64_t body_bytes);

/* Copies what the line needs, because the request's bytes do not stay. NULL when the log is off.
 * NULL also when memory is missing: then the line is already written, with 0 bytes. */
struct session_line *session_line_defer(struct session_exchange *x, unsigned status);

/* Logs a line that waited, and frees it. Accepts NULL. */
void session_line_end(struct session_thread *thread, struct session_line *line,
                      uint64_t body_bytes);
