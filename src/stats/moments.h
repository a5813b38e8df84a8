/* SPDX-License-Identifier: MIT
 *
 * The last minute: the totals at each second, for readers that come later, even when the server
 * hangs or has died. The master adds a moment with each heartbeat.
 *
 * A moment costs a snapshot. The latency of one second is the difference between
 * two sums over all histograms; the master remembers the earlier sum.
 */
#pragma once

#include "stats/snapshot.h"

/* Zeroed: no moment has been taken. The master's; one thread. */
struct stats_moments {
    bool begun;
    uint64_t latency[STATS_BUCKETS]; /* of all blocks, at the previous moment */
};

/* Takes a moment at `now_ns` (CLOCK_MONOTONIC). Has no effect on a segment of another master.
 * Returns how many arenas are damaged, and left out. */
unsigned stats_moments_take(struct stats_moments *moments, const struct stats_segment *segment,
                            uint64_t now_ns);
