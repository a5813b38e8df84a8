/* SPDX-License-Identifier: MIT */
#include "load/durations.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static size_t buckets(void)
{
    return histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS);
}

int load_durations_init(struct load_durations *durations)
{
    *durations = (struct load_durations){ .bucket = calloc(buckets(), sizeof(uint64_t)) };
    return durations->bucket ? 0 : -ENOMEM;
}

void load_durations_done(struct load_durations *durations)
{
    free(durations->bucket);
    *durations = (struct load_durations){ 0 };
}

void load_durations_merge(struct load_durations *to, const struct load_durations *from)
{
    if (from->count == 0)
        return;
    if (to->count == 0 || from->least_ns < to->least_ns)
        to->least_ns = from->least_ns;
    if (from->most_ns > to->most_ns)
        to->most_ns = from->most_ns;
    to->count += from->count;
    to->sum_ns += from->sum_ns;
    to->sum_squares += from->sum_squares;
    const size_t most = buckets();
    for (size_t i = 0; i < most; i++)
        if (from->bucket[i] > 0) /* reading alone does not allocate a page */
            to->bucket[i] += from->bucket[i];
}

uint64_t load_durations_quantile_ns(const struct load_durations *durations, double part)
{
    if (durations->count == 0)
        return 0;
    size_t index = histogram_quantile(durations->bucket, buckets(), durations->count, part);
    uint64_t high = histogram_high(index, LOAD_BITS);
    return high < durations->most_ns ? high : durations->most_ns;
}

double load_durations_mean_ns(const struct load_durations *durations)
{
    return durations->count > 0 ? durations->sum_ns / (double)durations->count : 0;
}

double load_durations_deviation_ns(const struct load_durations *durations)
{
    if (durations->count < 2)
        return 0;
    double count = (double)durations->count;
    double squares = durations->sum_squares - durations->sum_ns * (durations->sum_ns / count);
    return squares > 0 ? sqrt(squares / (count - 1)) : 0; /* rounding may make it negative */
}
