/* SPDX-License-Identifier: MIT
 *
 * Writing out a thread's buffer of lines without ever waiting for the other side,
 * and without parting a line. Private to log/.
 */
#pragma once

#include "log/access.h"

/* How long the last write of all waits for a reader to make room, each time. */
enum { LOG_SINK_PATIENCE_MS = 100 };

/* How long a line may be, so that it is written in one piece. */
size_t log_sink_line_max(const struct log_access_sink *sink);

/* Writes out what is in the buffer, which is not empty. What stays is left at its
 * front; what is dropped is counted. `patience_ms` is for pipes, terminals and
 * sockets. */
void log_sink_write(struct log_access *log, int patience_ms);
