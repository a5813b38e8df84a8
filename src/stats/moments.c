/* SPDX-License-Identifier: MIT */
#include "stats/moments.h"

#include "base/histogram.h"

#include <string.h>
#include <unistd.h>

enum { BUCKETS = STATS_RUNS * STATS_RUN_BUCKETS };

static const double quantiles[STATS_MOMENT_QUANTILES] = { 0.5, 0.9, 0.99, 0.999 };

static uint64_t cell_value(const stats_cell *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static const void *at(const struct stats_segment *segment, const _Atomic uint32_t *place)
{
    uint32_t offset = atomic_load_explicit(place, memory_order_acquire);
    return offset == 0 ? NULL : segment->base + offset;
}

static void add_latency(const struct stats_segment *segment, const struct stats_row *row,
                        uint64_t latency[BUCKETS])
{
    for (unsigned run = 0; run < STATS_RUNS; run++) {
        const stats_cell *cells = at(segment, &row->latency.run[run]);
        for (unsigned i = 0; cells && i < STATS_RUN_BUCKETS; i++)
            latency[run * STATS_RUN_BUCKETS + i] += cell_value(&cells[i]);
    }
}

static void sum_block(const struct stats_segment *segment, const struct stats_block *block,
                      struct stats_moment *moment, uint64_t latency[BUCKETS])
{
    for (unsigned i = 0; i < STATS_NAMED; i++)
        moment->counter[i] += cell_value(&block->counter[i]);
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        moment->by_class[stats_statuses[i] / 100 - 1] +=
            cell_value(&block->counter[STATS_STATUS_FIRST + i]);
    if (cell_value(&block->counter[STATS_requests]) == 0)
        return;
    for (unsigned i = 0; i < STATS_SITES_MAX; i++) {
        const struct stats_row *row = at(segment, &block->row[i]);
        if (row)
            add_latency(segment, row, latency);
    }
}

/* Computes the quantiles of the difference, and stores `now` in `before`. */
static void measure_latency(struct stats_moment *moment, uint64_t before[BUCKETS],
                            uint64_t now[BUCKETS])
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        uint64_t was = before[i];
        before[i] = now[i];
        now[i] -= was;
        moment->latency_count += now[i];
    }
    for (unsigned i = 0; moment->latency_count > 0 && i < STATS_MOMENT_QUANTILES; i++) {
        size_t index = histogram_quantile(now, BUCKETS, moment->latency_count, quantiles[i]);
        moment->latency_ns[i] = histogram_middle(index, STATS_BITS) << STATS_UNIT_BITS;
    }
}

void stats_moments_take(struct stats_moments *moments, const struct stats_segment *segment,
                        uint64_t now_ns)
{
    struct stats_header *header = stats_segment_header(segment);
    if (atomic_load(&header->master) != (int32_t)getpid())
        return;
    struct stats_moment moment = { .at_ns = now_ns };
    uint64_t latency[BUCKETS] = { 0 };
    const struct stats_block *block = at(segment, &header->first_block);
    for (; block; block = at(segment, &block->next))
        sum_block(segment, block, &moment, latency);
    if (moments->begun)
        measure_latency(&moment, moments->latency, latency);
    else
        memcpy(moments->latency, latency, sizeof(latency));
    moments->begun = true;
    stats_segment_add_moment(segment, &moment);
}
