/* SPDX-License-Identifier: MIT
 *
 * The blocks of this process's arena: which writer gets which block, and what happens to a block
 * when its writer is gone. A `fork` worker and its children share an arena. Master: stats/arena.h.
 */
#pragma once

#include "stats/segment.h"

/* The arena of this process. */
static inline struct stats_arena_header *stats_blocks_header(const struct stats_segment *segment)
{
    return (struct stats_arena_header *)(void *)segment->base;
}

/* Gives a block to a writer of this process. NULL: no memory for another one, which is counted. */
struct stats_block *stats_blocks_get(const struct stats_segment *segment);
void stats_blocks_put(const struct stats_segment *segment, struct stats_block *block);

/* Makes a new free list from what an earlier process of this arena has left: the blocks of its free
 * list, and those of processes that are gone. A child of that process may be alive, and may get,
 * make or put a block at the same time. */
void stats_blocks_recover(const struct stats_segment *segment);

/* Settles for a dead child that counted in this arena: ends what it had open, and frees its blocks.
 * Returns how many connections were open. */
uint64_t stats_blocks_settle(const struct stats_segment *segment, pid_t pid);
