/* SPDX-License-Identifier: MIT
 *
 * Signals as a descriptor: they are blocked, and read when the loop gets to
 * them, so that no handler ever runs between two lines of ours.
 */
#pragma once

#include "base/check.h"

#include <stddef.h>

/* Blocks the signals of the list for the process's threads to come and ignores
 * those that a write could raise, SIGPIPE and SIGXFSZ. Returns a non-blocking
 * descriptor they can be read from, or -errno. */
MUST_USE int os_signal_open(const int *signals, size_t count);

/* The next signal number, 0 when none waits, or -errno. */
int os_signal_read(int fd);
