/* SPDX-License-Identifier: MIT
 *
 * The blocks of a segment: which writer gets which block, and what happens to a block when its
 * writer is gone. Any process that has the segment may call this.
 */
#pragma once

#include "stats/segment.h"

/* Gives a block to a writer of this process. NULL: no memory for another one, which is counted. */
struct stats_block *stats_blocks_get(const struct stats_segment *segment);
void stats_blocks_put(const struct stats_segment *segment, struct stats_block *block);

/* Settles for a dead process: ends what it had open, and frees its blocks. Returns how many
 * connections were open. */
uint64_t stats_blocks_settle(const struct stats_segment *segment, pid_t pid);

/* Settles for every process that no longer exists. */
void stats_blocks_settle_dead(const struct stats_segment *segment);
