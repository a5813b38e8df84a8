/* SPDX-License-Identifier: MIT
 *
 * What happens in a second, from two views of a server, and who does it. Pure.
 *
 * Totals never fall; where they do, somebody else counts now. What is not known, as there is
 * nothing to compare with, is NAN.
 */
#pragma once

#include "view/view.h"

struct top_rates {
    double seconds;                 /* compared; 0: nothing is known */
    double counter[STATS_COUNTERS]; /* NAN for gauges */
    double by_class[5];
    struct stats_counts histogram[STATS_HISTOGRAMS]; /* what has come to it */
    uint64_t latency_ns[STATS_MOMENT_QUANTILES];     /* p50, p90, p99, p99.9; 0: none */
};

/* The percentiles that are told. */
extern const double top_quantiles[STATS_MOMENT_QUANTILES];

/* Whether both are of the same server, or of one and its successor, which goes on counting. */
bool top_rates_comparable(const struct view *before, const struct view *now);

/* `before` is comparable, or NULL: then they are those of the last second that the server
 * remembers, without histograms. */
void top_rates_between(struct top_rates *rates, const struct view *before, const struct view *now);

/* What of durations is in `now` and not in `before`, which may be NULL. */
void top_rates_counts(struct stats_counts *out, const struct stats_counts *before,
                      const struct stats_counts *now);

/* ---- workers ---- */

/* A process that serves, or one of several threads of it. */
struct top_worker {
    pid_t pid;
    unsigned thread;  /* counted from 1; 0: the process */
    unsigned threads; /* of a process */
    double rate;      /* requests in a second */
};

enum { TOP_WORKERS_MAX = 1024 };

struct top_workers {
    size_t count;
    double fairness; /* of what answers: 1: all the same; 1/n: one does it all */
    double most;     /* the highest rate of one, */
    double most_of_process;
    unsigned serving, processes;
    struct top_worker worker[TOP_WORKERS_MAX];
};

/* Those that have answered anything; the master does not. */
void top_rates_workers(struct top_workers *workers, const struct view *before,
                       const struct view *now);

/* Jain's index of fairness of `count` shares, by their sum and the sum of their squares. */
double top_rates_fairness(unsigned count, double sum, double squares);
