/* SPDX-License-Identifier: MIT
 *
 * What has been, for charts: stretches of time, each with the rates that held in it. It begins
 * with the moments that the server itself remembers, and goes on with what is read.
 *
 * Stretches of two servers, and such with a hole between them, are not joined: a chart
 * has a gap there. Pure.
 */
#pragma once

#include "view/view.h"

/* How things stood. */
struct top_totals {
    uint64_t at_ns; /* 0: nothing known */
    uint64_t counter[STATS_NAMED];
    uint64_t by_class[5];
};

/* What there are charts of: rates of counters, gauges and pairs as they stand, durations. */
enum top_series {
    TOP_SERIES_COUNTERS = 0,
    TOP_SERIES_PAIRS = TOP_SERIES_COUNTERS + STATS_NAMED,
    TOP_SERIES_CLASSES = TOP_SERIES_PAIRS + STATS_PAIRS,
    TOP_SERIES_LATENCY = TOP_SERIES_CLASSES + 5, /* p50, p90, p99, p99.9, in ns */
    TOP_SERIES = TOP_SERIES_LATENCY + STATS_MOMENT_QUANTILES
};

struct top_stretch {
    uint64_t from_ns, to_ns;
    float value[TOP_SERIES];
};

enum { TOP_STRETCHES = 1024 };

struct top_history {
    unsigned next, count;
    struct top_totals last;
    struct top_stretch stretch[TOP_STRETCHES]; /* a ring */
};

void top_totals_of(struct top_totals *totals, const struct view *view);
void top_totals_of_moment(struct top_totals *totals, const struct stats_moment *moment);

/* Goes on to `now`, with the percentiles of the time since. The first time, and after a
 * hole, from what the server remembers of it. */
void top_history_go_on(struct top_history *history, const struct view *now,
                       const uint64_t latency_ns[STATS_MOMENT_QUANTILES]);

/* Another server, whose totals are its own. What was, stays. */
void top_history_break(struct top_history *history);

/* The last `count` steps of `step_ns` before `end_ns`, the oldest first: of rates the mean,
 * of durations the longest. NAN where nothing is known. */
void top_history_chart(const struct top_history *history, enum top_series series, uint64_t end_ns,
                       uint64_t step_ns, float *out, size_t count);
