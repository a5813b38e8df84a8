/* SPDX-License-Identifier: MIT
 *
 * The past, for charts: stretches of time, each with the rates that held in it. The history
 * begins with the moments that the server remembers, and continues with what is read.
 *
 * Two stretches are not joined across a gap, or when the server changes: the chart has a gap
 * there. Pure.
 */
#pragma once

#include "view/view.h"

/* Totals at one time. */
struct top_totals {
    uint64_t at_ns; /* 0: unknown */
    uint64_t counter[STATS_NAMED];
    uint64_t by_class[5];
};

/* The series of the charts: rates of counters, values of gauges and pairs, and durations. */
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

void top_history_totals_of(struct top_totals *totals, const struct view *view);
void top_history_totals_of_moment(struct top_totals *totals, const struct stats_moment *moment);

/* Continues the history to `now`, with the percentiles of the time since. The first time, and after
 * a gap, the moments that the server remembers fill it. */
void top_history_go_on(struct top_history *history, const struct view *now,
                       const uint64_t latency_ns[STATS_MOMENT_QUANTILES]);

/* Another server begins, with other totals. The stretches stay. */
void top_history_break(struct top_history *history);

/* Writes the last `count` steps of `step_ns` before `end_ns`, the oldest first. A step has the mean
 * of a rate, and the longest of durations; NAN where nothing is known. */
void top_history_chart(const struct top_history *history, enum top_series series, uint64_t end_ns,
                       uint64_t step_ns, float *out, size_t count);
