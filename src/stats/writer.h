/* SPDX-License-Identifier: MIT
 *
 * Counting. A writer is the hold of one thread or process on a block of the segment. Adding to
 * a counter is a load, an addition and a store.
 *
 * Without statistics, or without a free block, the block is private memory that no reader sees.
 * The code that counts is the same in all cases.
 */
#pragma once

#include "base/histogram.h"
#include "stats/segment.h"

struct stats_writer {
    struct stats_block *block;
    const struct stats_segment *segment; /* NULL: `block` is private */
};

/* Takes a block. `segment` may be NULL; it is borrowed until stats_writer_close. */
void stats_writer_open(struct stats_writer *writer, const struct stats_segment *segment);

/* Gives the block back. Accepts a zeroed writer. */
void stats_writer_close(struct stats_writer *writer);

/* Whether readers can see the counts. If not, nothing needs to be measured. */
static inline bool stats_writer_visible(const struct stats_writer *writer)
{
#ifdef WEIR_WITHOUT_STATS
    (void)writer;
    return false;
#else
    return writer->segment != NULL;
#endif
}

static inline void stats_writer_add_to_cell(stats_cell *cell, uint64_t count)
{
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + count,
                          memory_order_relaxed);
}

static inline void stats_writer_add(const struct stats_writer *writer, enum stats_counter counter,
                                    uint64_t count)
{
#ifdef WEIR_WITHOUT_STATS
    (void)writer, (void)counter, (void)count;
#else
    stats_writer_add_to_cell(&writer->block->counter[counter], count);
#endif
}

/* For a gauge. */
static inline void stats_writer_set(const struct stats_writer *writer, enum stats_counter counter,
                                    uint64_t value)
{
    atomic_store_explicit(&writer->block->counter[counter], value, memory_order_relaxed);
}

/* The row of a site (0: no site). NULL: no memory for it, or no reader would see it. */
struct stats_row *stats_writer_new_row(const struct stats_writer *writer, unsigned site);

static inline struct stats_row *stats_writer_row(const struct stats_writer *writer, unsigned site)
{
    uint32_t place = atomic_load_explicit(&writer->block->row[site], memory_order_relaxed);
    if (__builtin_expect(place == 0, 0))
        return stats_writer_new_row(writer, site);
    return (struct stats_row *)(void *)(writer->segment->base + place);
}

/* Takes a run of buckets into use and returns its place; 0: no memory for it. */
uint32_t stats_writer_new_run(const struct stats_writer *writer, struct stats_durations *durations,
                              unsigned run);

/* Counts a duration `times` times. The writer is visible (stats_writer_visible). */
static inline void stats_writer_record(const struct stats_writer *writer,
                                       struct stats_durations *durations, uint64_t ns,
                                       uint64_t times)
{
    uint64_t units = ns >> STATS_UNIT_BITS;
    size_t index = histogram_index(units < STATS_UNITS_MOST ? units : STATS_UNITS_MOST, STATS_BITS);
    unsigned run = (unsigned)(index >> STATS_BITS);
    uint32_t place = atomic_load_explicit(&durations->run[run], memory_order_relaxed);
    if (__builtin_expect(place == 0, 0))
        place = stats_writer_new_run(writer, durations, run);
    if (__builtin_expect(place == 0, 0)) {
        stats_writer_add(writer, STATS_durations_unrecorded, times);
        return;
    }
    stats_cell *buckets = (stats_cell *)(void *)(writer->segment->base + place);
    stats_writer_add_to_cell(&buckets[index & (STATS_RUN_BUCKETS - 1)], times);
    stats_writer_add_to_cell(&durations->sum_ns, ns * times);
}
