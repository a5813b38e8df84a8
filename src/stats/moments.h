/* SPDX-License-Identifier: MIT
 *
 * The last minute: how the totals stood at each second, for readers that come later, also
 * of a server that hangs or has died. The master takes a moment at each beat.
 *
 * A moment costs a walk over all blocks; how long requests have taken since the one
 * before is the difference of what all of them have recorded, which only the master
 * remembers.
 */
#pragma once

#include "stats/segment.h"

/* Zeroed: none has been taken yet. The master's; one thread. */
struct stats_moments {
    bool begun;
    uint64_t latency[STATS_RUNS * STATS_RUN_BUCKETS]; /* of all blocks, at the moment before */
};

/* Takes one, at `now_ns` (CLOCK_MONOTONIC); nothing where another master has the segment. */
void stats_moments_take(struct stats_moments *moments, const struct stats_segment *segment,
                        uint64_t now_ns);
