/* SPDX-License-Identifier: MIT */
#include "view/advice.h"

#include <inttypes.h>
#include <stdio.h>

/* The misses of all sizes are estimated from one sample of the files. The sample may lack the
 * most requested file, so only differences between the estimates are accurate. */
struct view_advice view_advice_of(const struct view *view)
{
    const uint64_t *counter = view->snapshot->counter;
    const uint64_t misses[VIEW_SIZES] = {
        counter[STATS_cache_misses_half],
        counter[STATS_cache_misses_same],
        counter[STATS_cache_misses_double],
        counter[STATS_cache_misses_quadruple],
    };
    double hits = (double)counter[STATS_cache_hits];
    double lookups = hits + (double)counter[STATS_cache_misses];
    struct view_advice advice = { .known = lookups > 0 && counter[STATS_cache_evictions] > 0 &&
                                           !view_works_in_processes(view_serving(view)) };
    for (unsigned i = 0; i < VIEW_SIZES; i++) {
        double more = (double)misses[i] - (double)misses[VIEW_SAME];
        double ratio = lookups > 0 ? (hits - more) / lookups : 0;
        advice.hit_ratio[i] = ratio < 0 ? 0 : ratio < 1 ? ratio : 1;
        advice.cache_bytes[i] = view_serving(view)->cache_bytes / 2 << i;
    }
    return advice;
}

/* A size as it would be configured. */
static void print_cache_size(uint64_t bytes, char out[24])
{
    static const struct {
        uint64_t bytes;
        const char *name;
    } units[] = { { 1 << 30, "G" }, { 1 << 20, "M" }, { 1 << 10, "K" }, { 1, "" } };
    unsigned unit = 0;
    while (bytes % units[unit].bytes != 0 || bytes < units[unit].bytes)
        if (units[++unit].bytes == 1)
            break;
    snprintf(out, 24, "%" PRIu64 "%s", bytes / units[unit].bytes, units[unit].name);
}

void view_advice_say(const struct view *view, char out[VIEW_ADVICE_MAX])
{
    const struct view_advice advice = view_advice_of(view);
    const uint64_t *counter = view->snapshot->counter;
    if (view_serving(view)->cache_bytes == 0) {
        snprintf(out, VIEW_ADVICE_MAX, "there is no cache");
    } else if (view_works_in_processes(view_serving(view))) {
        snprintf(out, VIEW_ADVICE_MAX,
                 "not estimated: each connection begins with an empty cache of its own. Models "
                 "other than fork share one");
    } else if (counter[STATS_cache_evictions] == 0) {
        snprintf(out, VIEW_ADVICE_MAX, "no entry was ever evicted, so the size is enough");
    } else if (!advice.known) {
        snprintf(out, VIEW_ADVICE_MAX, "nothing is known yet");
    } else {
        char half[24], twice[24], quadruple[24];
        print_cache_size(advice.cache_bytes[VIEW_HALF], half);
        print_cache_size(advice.cache_bytes[VIEW_DOUBLE], twice);
        print_cache_size(advice.cache_bytes[VIEW_QUADRUPLE], quadruple);
        snprintf(out, VIEW_ADVICE_MAX,
                 "hit ratio now %.1f %%; about %.1f %% with %s, %.1f %% with %s, %.1f %% with %s",
                 100 * advice.hit_ratio[VIEW_SAME], 100 * advice.hit_ratio[VIEW_HALF], half,
                 100 * advice.hit_ratio[VIEW_DOUBLE], twice, 100 * advice.hit_ratio[VIEW_QUADRUPLE],
                 quadruple);
    }
}
