/* SPDX-License-Identifier: MIT
 *
 * Rates: how much happens in a second, and in which thread, computed from two views of a server.
 * Pure.
 *
 * Totals never fall. Where they do, the views are of two servers. A value that cannot be known,
 * because there is nothing to compare with, is NAN.
 */
#pragma once

#include "view/view.h"

struct top_rates {
    double seconds;                 /* between the two views; 0: nothing is known */
    double counter[STATS_COUNTERS]; /* NAN for gauges */
    double by_class[5];
    struct stats_counts histogram[STATS_HISTOGRAMS]; /* the durations added between the views */
    uint64_t latency_ns[STATS_MOMENT_QUANTILES];     /* p50, p90, p99, p99.9; 0: none */
};

/* The percentiles that are shown. */
extern const double top_quantiles[STATS_MOMENT_QUANTILES];

/* Whether both views are of the same server, or of a server and its successor, which continues the
 * same totals. */
bool top_rates_comparable(const struct view *before, const struct view *now);

/* `before` is comparable, or NULL. Without it the rates are those of the last second that the
 * server remembers, without histograms. */
void top_rates_between(struct top_rates *rates, const struct view *before, const struct view *now);

/* The difference of two histograms; `before` may be NULL. */
void top_rates_counts(struct stats_counts *out, const struct stats_counts *before,
                      const struct stats_counts *now);

/* ---- workers ---- */

/* A worker process, or one of its threads. */
struct top_worker {
    pid_t pid;
    unsigned thread;  /* from 1; 0: the whole process */
    unsigned threads; /* of the process */
    double rate;      /* requests in a second */
};

enum { TOP_WORKERS_MAX = 1024 };

struct top_workers {
    size_t count;
    double fairness;        /* Jain's index of the threads that answer: 1/n to 1 */
    double most;            /* the highest rate of a thread */
    double most_of_process; /* the highest rate of a process */
    unsigned serving, processes;
    struct top_worker worker[TOP_WORKERS_MAX];
};

/* Lists workers that have answered anything. */
void top_rates_workers(struct top_workers *workers, const struct view *before,
                       const struct view *now);

/* Jain's index of fairness of `count` shares, by their sum and the sum of their squares. */
double top_rates_fairness(unsigned count, double sum, double squares);
