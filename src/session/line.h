/* SPDX-License-Identifier: MIT
 *
 * Access-log lines of answers. A plain `combined` line of an answer that is whole in the output
 * buffer is written at once. The line of any other answer waits until its body is sent, so that it
 * reports the bytes really sent. With a layout (log/layout.h) every line waits until its answer is
 * sent, because it has the duration.
 *
 * Private to session/.
 */
#pragma once

#include "log/access.h"

struct session_answer;
struct session_buffer;
struct session_exchange;
struct session_thread;

/* Bytes of a client's address as text. */
enum { SESSION_LINE_PEER_MAX = 46 };

/* A line that waits. Its spans point into `text`, except for those that live longer. */
struct session_line {
    struct session_line *next; /* of those that wait for the same output */
    uint64_t began_ns;         /* when the first byte of the request arrived */
    struct log_access_line line;
    struct log_access_details *details; /* for a layout, before `text`; NULL: there is none */
    char text[];
};

/* Logs the answer to `x`, which is whole in the session's output: now, or with a layout when
 * session_line_write_sent is called. */
void session_line_log(struct session_exchange *x, unsigned status, uint64_t body_bytes);

/* Copies what the line needs, because the request's bytes do not stay. NULL when the log is off,
 * and when `log-sample` leaves the line out. NULL also when memory is missing: then the line is
 * already written, with 0 bytes. */
struct session_line *session_line_defer(struct session_exchange *x, unsigned status);

/* The last byte of the answer is in `out`, and its line, if it has one, has a duration: the line
 * waits there. */
void session_line_keep(struct session_buffer *out, struct session_answer *answer);

/* The answer has waited for the disk once more, behind its head. */
void session_line_add_wait(struct session_line *line, uint64_t waited_ns);

/* The output is sent, or will not be: writes the lines that wait there. Some do. */
void session_line_write_sent(struct session_thread *thread, struct session_buffer *out);

/* Logs a line that waited, and frees it. Accepts NULL. */
void session_line_end(struct session_thread *thread, struct session_line *line,
                      uint64_t body_bytes);
