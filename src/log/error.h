/* SPDX-License-Identifier: MIT
 *
 * The error log: one line for each thing an operator should know, with time,
 * level and process, in one write. By default it is standard error.
 *
 *   2026-11-21T08:00:00.123Z error [4711] site docs: cannot open /srv/docs: Permission denied
 */
#pragma once

#include "base/check.h"

#include <stdatomic.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* A line longer than this is cut, marked with "..."; a pipe takes it in one piece. */
enum { LOG_ERROR_LINE_MAX = 2048 };

/* Opens a place for lines: a file, or for NULL and "-" standard error. Returns a
 * descriptor for log_error_use, or -errno. */
MUST_USE int log_error_open(const char *path);

/* Sends lines of at least `level` to `fd`, which log_error_open gave for `path`, and
 * takes it; what was used before is closed. The path is copied. Before any other
 * thread logs. Without it, lines of at least LOG_INFO go to standard error. */
void log_error_use(int fd, const char *path, enum log_level level);

/* Lets go of a descriptor of log_error_open that was not used. */
void log_error_drop(int fd);

/* Until it is called with NULL, lines of level LOG_ERROR go to `hear` and nowhere
 * else, without time and process: for whoever asked for what failed. Before any
 * other thread logs. */
void log_error_divert(void (*hear)(void *context, const char *text), void *context);

/* Opens the path anew after a rotation; keeps the old file when that fails. Any
 * thread. Returns 0 or -errno. */
MUST_USE int log_error_reopen(void);

/* Writes one line. Control bytes in it, and what is not UTF-8, are told as \xHH.
 * Waits for nobody: a line for which a pipe or terminal has no room is lost, and
 * the next one that is written says how many were. Leaves errno as it was. Any
 * thread. */
void log_error(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, but at most one line in `interval_s` seconds for each `limit` (a
 * static of the caller's, zero at first): for what can happen a thousand times
 * a second. The next line says how many were held back. */
struct log_error_limit {
    _Atomic long last_s;
    _Atomic unsigned long held_back;
};
void log_error_limited(struct log_error_limit *limit, int interval_s, enum log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
