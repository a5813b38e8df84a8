/* SPDX-License-Identifier: MIT
 *
 * Signals as a descriptor. They are blocked, and the loop reads them; no handler ever interrupts
 * the program.
 */
#pragma once

#include "base/check.h"

#include <stddef.h>

/* Blocks the signals in this thread and in threads that it starts later. Ignores SIGPIPE and
 * SIGXFSZ, which a write can raise. Returns a non-blocking descriptor to read the signals from, or
 * -errno. */
MUST_USE int os_signal_open(const int *signals, size_t count);

/* The number of the next pending signal; 0: none; or -errno. */
int os_signal_read(int fd);
