/* SPDX-License-Identifier: MIT
 *
 * The error log: one line for each thing that an operator should know, with time, level and
 * process, in one write. The default is standard error.
 *
 *   2026-11-21T08:00:00.123Z error [4711] site docs: cannot open /srv/docs: Permission denied
 */
#pragma once

#include "base/check.h"
#include "log/file.h"

#include <stdatomic.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* A longer line is cut and marked with "...". A pipe takes a line of this length in one piece. */
enum { LOG_ERROR_LINE_MAX = 2048 };

/* Opens a destination for lines: a file or a socket (log_file_open), or standard error for NULL and
 * "-". In a datagram the severity is that of the receiver's protocol. `opening`
 * may be NULL. Returns a descriptor for log_error_use, or -errno. */
MUST_USE int log_error_open(const char *path, struct log_file_opening *opening);

/* Writes lines of at least `level` to `fd`, which log_error_open returned for `path`. Takes
 * `fd`, closes the descriptor before it, and copies the path. Call it before any other thread
 * logs. Without it, lines of at least LOG_INFO go to standard error. */
void log_error_use(int fd, const char *path, enum log_level level);

/* Closes a descriptor of log_error_open that was not used. */
void log_error_drop(int fd);

/* Until a call with NULL, passes lines of level LOG_ERROR to `hear` only, without time and
 * process. A command uses it to report why it failed. Call it before any other thread logs. */
void log_error_divert(void (*hear)(void *context, const char *text), void *context);

/* The path of the file in use; NULL: standard error. Valid until the next log_error_use. */
const char *log_error_path(void);

/* Moves the descriptor of the log to a number of at least `least`. For a caller that overwrites the
 * numbers from 3 on below it. 0 or -errno. Call it in a process that has one thread. */
MUST_USE int log_error_move(int least);

/* Continues in the file `fd`, which the caller closes; the old file is closed. Standard error stays
 * as it is. Any thread, and a signal handler. 0, or -errno and the old file is kept. */
MUST_USE int log_error_replace(int fd);

/* Writes one line. Control bytes and invalid UTF-8 become \xHH. It never waits. A line for which
 * a pipe or terminal has no space is lost, and the next line reports how many were lost. Keeps
 * errno. Any thread. */
void log_error(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a line of level LOG_ERROR, and the same to standard error if the log is a file. It is for
 * errors that the operator must see at once: a failed start, and failures of the log itself. */
void log_error_twice(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same as log_error, but at most one line in `interval_s` seconds for each `limit`, a static of
 * the caller, zero at first. It is for events that can happen a thousand times a second. The next
 * line reports how many were held back. */
struct log_error_limit {
    _Atomic long last_s;
    _Atomic unsigned long held_back;
};
void log_error_limited(struct log_error_limit *limit, int interval_s, enum log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
