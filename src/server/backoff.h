/* SPDX-License-Identifier: MIT
 *
 * How long the master waits before it starts a process again that keeps failing.
 */
#pragma once

#include "base/duration.h"

#include <stdint.h>

#define SERVER_BACKOFF_FIRST_NS (10 * DURATION_MS)
#define SERVER_BACKOFF_LAST_NS  (1000 * DURATION_MS)

/* The wait doubles with each failure in succession: 0, 10 ms, 20 ms, ... 1 s. */
static inline uint64_t server_backoff_ns(unsigned failures)
{
    uint64_t wait_ns = failures > 0 ? SERVER_BACKOFF_FIRST_NS : 0;
    for (unsigned i = 1; i < failures && wait_ns < SERVER_BACKOFF_LAST_NS; i++)
        wait_ns *= 2;
    return wait_ns < SERVER_BACKOFF_LAST_NS ? wait_ns : SERVER_BACKOFF_LAST_NS;
}
