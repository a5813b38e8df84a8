/* SPDX-License-Identifier: MIT
 *
 * A histogram of durations, in buckets of LOAD_BITS bits (base/histogram.h). These are the buckets
 * of an HdrHistogram of 3 digits from 1 ns to 1 h. Count, sums, least and most are kept exactly
 * beside them. One thread writes; merging is adding.
 */
#pragma once

#include "base/check.h"
#include "base/duration.h"
#include "base/histogram.h"

#include <stdint.h>

enum { LOAD_BITS = 10 };

/* 1 h. A longer duration is counted as this. */
#define LOAD_LONGEST_NS (3600 * DURATION_SECOND)

/* `bucket` has histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) places. */
struct load_durations {
    uint64_t count;
    uint64_t least_ns, most_ns; /* 0 when there are none */
    double sum_ns, sum_squares;
    uint64_t *bucket;
};

MUST_USE int load_durations_init(struct load_durations *durations); /* 0 or -ENOMEM */
void load_durations_done(struct load_durations *durations);

static inline void load_durations_add(struct load_durations *durations, uint64_t ns)
{
    uint64_t value = ns < LOAD_LONGEST_NS ? ns : LOAD_LONGEST_NS;
    double real = (double)value;
    durations->bucket[histogram_index(value, LOAD_BITS)]++;
    if (durations->count++ == 0 || value < durations->least_ns)
        durations->least_ns = value;
    if (value > durations->most_ns)
        durations->most_ns = value;
    durations->sum_ns += real;
    durations->sum_squares += real * real;
}

void load_durations_merge(struct load_durations *to, const struct load_durations *from);

/* The quantile `part` (0 to 1): the greatest value of its bucket, which is within 0.1 %, and at
 * most the longest duration. 0 when there are none. */
uint64_t load_durations_quantile_ns(const struct load_durations *durations, double part);

/* Both are 0 when there are too few durations. */
double load_durations_mean_ns(const struct load_durations *durations);
double load_durations_deviation_ns(const struct load_durations *durations); /* of the sample */
