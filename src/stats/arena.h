/* SPDX-License-Identifier: MIT
 *
 * The arenas of a segment: which process counts in which, and what happens to an arena when its
 * process is gone. Except for stats_arena_take, only masters call this. A master reads copies of
 * arenas (stats/copy.h) and writes in its own arena alone.
 */
#pragma once

#include "stats/writer.h"

/* Takes `bytes` zeroed bytes of this process's arena into use and returns their place, a multiple
 * of CACHE_LINE. Returns 0 when no memory is left. Any thread. */
uint32_t stats_arena_take(const struct stats_segment *segment, size_t bytes);

/* Reserves an arena for a child process that is started next: one that a process has left, or a new
 * one. A master gets one that no worker has ever written. STATS_ARENA_NONE when there is no memory,
 * which is counted. */
unsigned stats_arena_claim(struct stats_segment *segment, bool for_master);

/* Process `pid` counts in the reserved arena. 0: none does, the arena is free again. */
void stats_arena_give(const struct stats_segment *segment, unsigned arena, pid_t pid);

/* Opens the files of arenas that another master has created. */
void stats_arena_open_all(struct stats_segment *segment);

/* Whether process `pid` counts in one of the arenas. */
bool stats_arena_is_of(const struct stats_segment *segment, pid_t pid);

/* Process `pid` has ended: ends in the block of `writer`, which is the master's, what the process
 * had open, and frees its arena. Then does the same for all processes that no longer exist. Returns
 * how many connections were open. */
uint64_t stats_arena_settle(const struct stats_segment *segment, const struct stats_writer *writer,
                            pid_t pid);

/* In a process that has mapped an arena: puts the blocks that no process uses into the free list.
 * Returns false for an arena that is damaged. */
MUST_USE bool stats_arena_adopt(const struct stats_segment *segment);

/* ---- files ---- */

/* Takes `fd` as the file of an arena, to read it. 0 or -ENOMEM. */
MUST_USE int stats_arena_add_file(struct stats_segment *segment, unsigned arena, int fd);

/* Opens a file that this process has open, with other rights (O_RDONLY, O_RDWR). Gives a
 * descriptor, or -errno. */
MUST_USE int stats_arena_reopen(int fd, int rights);

/* Allocates a part of a file. 0 or -errno. */
MUST_USE int stats_arena_allocate(int fd, uint64_t offset, size_t bytes);

/* Maps all of `bytes` shared; without `writable` only to read. 0 or -errno. */
MUST_USE int stats_arena_map(int fd, size_t bytes, bool writable, char **ret_base);
