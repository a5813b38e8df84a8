/* SPDX-License-Identifier: MIT
 *
 * Writing a thread's buffer of lines, without waiting for the reader and without splitting a
 * line. Private to log/.
 */
#pragma once

#include "log/access.h"

/* How long each write at the end waits for a slow reader. */
enum { LOG_SINK_PATIENCE_MS = 100 };

/* The most bytes of a line that is written in one piece. */
size_t log_sink_line_max(const struct log_access_sink *sink);

/* Writes the buffer, which must not be empty. Unwritten lines stay at its front. Dropped lines
 * are counted. `patience_ms` applies to pipes, terminals and sockets. */
void log_sink_write(struct log_access *log, int patience_ms);

/* Counts lines that are lost, and has the error log report the loss (log/loss.h). `why` is for
 * people. */
void log_sink_drop(struct log_access *log, uint64_t lines, const char *why);
