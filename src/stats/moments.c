/* SPDX-License-Identifier: MIT */
#include "stats/moments.h"

#include "base/histogram.h"

#include <string.h>
#include <unistd.h>

static const double quantiles[STATS_MOMENT_QUANTILES] = { 0.5, 0.9, 0.99, 0.999 };

/* Computes the quantiles of the difference, and stores the present counts in `before`. The counts
 * of an arena that becomes damaged are missing, so a difference can be below 0. */
static void measure_latency(struct stats_moment *moment, uint64_t before[STATS_BUCKETS],
                            const uint64_t now[STATS_BUCKETS])
{
    uint64_t since[STATS_BUCKETS];
    for (unsigned i = 0; i < STATS_BUCKETS; i++) {
        since[i] = now[i] > before[i] ? now[i] - before[i] : 0;
        before[i] = now[i];
        moment->latency_count += since[i];
    }
    for (unsigned i = 0; moment->latency_count > 0 && i < STATS_MOMENT_QUANTILES; i++) {
        size_t index =
            histogram_quantile(since, STATS_BUCKETS, moment->latency_count, quantiles[i]);
        if (index < STATS_BUCKETS)
            moment->latency_ns[i] = histogram_middle(index, STATS_BITS) << STATS_UNIT_BITS;
    }
}

unsigned stats_moments_take(struct stats_moments *moments, const struct stats_segment *segment,
                            uint64_t now_ns)
{
    char why[STATS_WHY_MAX];
    if (atomic_load(&segment->header->master) != (int32_t)getpid())
        return 0;
    struct stats_snapshot *now = stats_snapshot_here(segment, why);
    if (!now)
        return 0;
    struct stats_moment moment = { .at_ns = now_ns };
    memcpy(moment.counter, now->counter, sizeof(moment.counter));
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        moment.by_class[stats_statuses[i] / 100 - 1] += now->counter[STATS_STATUS_FIRST + i];
    const uint64_t *latency = now->histogram[STATS_HISTOGRAM_latency].bucket;
    if (moments->begun)
        measure_latency(&moment, moments->latency, latency);
    else
        memcpy(moments->latency, latency, sizeof(moments->latency));
    moments->begun = true;
    stats_segment_add_moment(segment, &moment);
    unsigned damaged = now->damaged;
    stats_snapshot_free(now);
    return damaged;
}
