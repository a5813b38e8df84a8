/* SPDX-License-Identifier: MIT
 *
 * Access-log lines of answers: written at once for an answer that is whole in the
 * output buffer, and kept until its body is out for one that is not, so that the
 * line tells how much was really sent.
 *
 * Private to session/.
 */
#pragma once

#include "log/access.h"

struct session_exchange;
struct session_thread;

/* A line that waits; what its spans point to is behind the struct. */
struct session_line {
    struct log_access_line line;
    char text[];
};

/* Logs the answer to `x` now. */
void session_line_log(struct session_exchange *x, unsigned status, uint64_t body_bytes);

/* Copies what the line needs, for the request's bytes will be gone by then. NULL
 * when there is nothing to wait for: the log is off, or there was no memory and
 * the line has been written already, with no bytes. */
struct session_line *session_line_defer(struct session_exchange *x, unsigned status);

/* Logs a line that waited, and frees it. Accepts NULL. */
void session_line_end(struct session_thread *thread, struct session_line *line,
                      uint64_t body_bytes);
