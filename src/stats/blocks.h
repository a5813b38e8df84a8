/* SPDX-License-Identifier: MIT
 *
 * The blocks of a segment: who gets which, and what becomes of them when their
 * writer is gone. Any process that has the segment.
 */
#pragma once

#include "stats/segment.h"

/* A block for a writer of this process. NULL: there is no room for another; counted. */
struct stats_block *stats_blocks_get(const struct stats_segment *segment);
void stats_blocks_put(const struct stats_segment *segment, struct stats_block *block);

/* The process is dead: what it had open ends, and its blocks are free. Returns how many
 * connections it had. */
uint64_t stats_blocks_settle(const struct stats_segment *segment, pid_t pid);

/* Does so for every process that is not there any more. */
void stats_blocks_settle_dead(const struct stats_segment *segment);
