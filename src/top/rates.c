/* SPDX-License-Identifier: MIT */
#include "top/rates.h"

#include "top/history.h"

#include <math.h>
#include <string.h>

const double top_quantiles[STATS_MOMENT_QUANTILES] = { 0.5, 0.9, 0.99, 0.999 };

bool top_rates_comparable(const struct view *before, const struct view *now)
{
    const struct stats_snapshot *a = before->snapshot, *b = now->snapshot;
    return now->read_ns > before->read_ns && a->started_s == b->started_s &&
           a->counter[STATS_requests] <= b->counter[STATS_requests] &&
           a->counter[STATS_connections_accepted] <= b->counter[STATS_connections_accepted];
}

static double rate_of(uint64_t from, uint64_t to, double seconds)
{
    return to > from ? (double)(to - from) / seconds : 0;
}

static bool is_gauge(unsigned counter)
{
    return counter < STATS_NAMED && stats_counters[counter].kind == STATS_KIND_GAUGE;
}

void top_rates_counts(struct stats_counts *out, const struct stats_counts *before,
                      const struct stats_counts *now)
{
    if (!before) {
        *out = *now;
        return;
    }
    out->count = 0;
    out->sum_ns = now->sum_ns > before->sum_ns ? now->sum_ns - before->sum_ns : 0;
    if (now->count == before->count) {
        memset(out->bucket, 0, sizeof(out->bucket));
        return;
    }
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        uint64_t more = now->bucket[i] > before->bucket[i] ? now->bucket[i] - before->bucket[i] : 0;
        out->bucket[i] = more;
        out->count += more;
    }
}

static void compare_totals(struct top_rates *rates, const struct top_totals *before,
                           const struct top_totals *now)
{
    rates->seconds = (double)(now->at_ns - before->at_ns) / 1e9;
    for (unsigned i = 0; i < STATS_NAMED; i++)
        rates->counter[i] =
            is_gauge(i) ? NAN : rate_of(before->counter[i], now->counter[i], rates->seconds);
    for (unsigned i = 0; i < 5; i++)
        rates->by_class[i] = rate_of(before->by_class[i], now->by_class[i], rates->seconds);
}

static void begin_from_moments(struct top_rates *rates, const struct stats_snapshot *s)
{
    if (s->moment_count < 2)
        return;
    struct top_totals before, now;
    const struct stats_moment *last = &s->moment[s->moment_count - 1];
    top_history_totals_of_moment(&before, last - 1);
    top_history_totals_of_moment(&now, last);
    compare_totals(rates, &before, &now);
    memcpy(rates->latency_ns, last->latency_ns, sizeof(rates->latency_ns));
}

void top_rates_between(struct top_rates *rates, const struct view *before, const struct view *now)
{
    const struct stats_snapshot *s = now->snapshot;
    memset(rates, 0, sizeof(*rates));
    for (unsigned i = 0; i < STATS_COUNTERS; i++)
        rates->counter[i] = NAN;
    for (unsigned i = 0; i < 5; i++)
        rates->by_class[i] = NAN;
    if (!before) {
        begin_from_moments(rates, s);
        return;
    }
    struct top_totals from, to;
    top_history_totals_of(&from, before);
    top_history_totals_of(&to, now);
    compare_totals(rates, &from, &to);
    for (unsigned i = STATS_NAMED; i < STATS_COUNTERS; i++)
        rates->counter[i] = rate_of(before->snapshot->counter[i], s->counter[i], rates->seconds);
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++)
        top_rates_counts(&rates->histogram[i], &before->snapshot->histogram[i], &s->histogram[i]);
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        rates->latency_ns[i] = stats_snapshot_quantile_ns(
            &rates->histogram[STATS_HISTOGRAM_latency], top_quantiles[i]);
}

/* ---- workers ---- */

double top_rates_fairness(unsigned count, double sum, double squares)
{
    return squares > 0 ? sum * sum / (count * squares) : NAN;
}

/* Parts are in the order of owners, then of blocks. `*at` moves forward in those of `before`. */
static const struct stats_part *find_before(const struct view *before, size_t *at,
                                            const struct stats_part *part)
{
    const struct stats_snapshot *s = before ? before->snapshot : NULL;
    for (; s && *at < s->part_count; (*at)++) {
        const struct stats_part *each = &s->parts[*at];
        if (each->owner == part->owner && each->block == part->block)
            return each;
        if (each->owner > part->owner || (each->owner == part->owner && each->block > part->block))
            break;
    }
    return NULL;
}

struct tally {
    double seconds, sum, squares;
};

static void add_worker(struct top_workers *workers, struct tally *tally,
                       const struct stats_part *before, const struct stats_part *part)
{
    struct top_worker *process = NULL;
    size_t count = workers->count;
    double rate = before ? rate_of(before->requests, part->requests, tally->seconds) : NAN;
    while (count > 0 && workers->worker[count - 1].pid == part->owner)
        process = &workers->worker[--count];
    if ((process ? workers->count : workers->count + 1) >= TOP_WORKERS_MAX)
        return;
    if (!process) {
        process = &workers->worker[workers->count++];
        workers->processes++;
        *process = (struct top_worker){ .pid = part->owner, .rate = NAN };
    }
    process->threads++;
    workers->worker[workers->count++] =
        (struct top_worker){ .pid = part->owner, .thread = process->threads, .rate = rate };
    if (isnan(rate))
        return;
    process->rate = isnan(process->rate) ? rate : process->rate + rate;
    if (process->rate > workers->most_of_process)
        workers->most_of_process = process->rate;
    workers->serving++;
    tally->sum += rate;
    tally->squares += rate * rate;
    workers->most = rate > workers->most ? rate : workers->most;
}

void top_rates_workers(struct top_workers *workers, const struct view *before,
                       const struct view *now)
{
    const struct stats_snapshot *s = now->snapshot;
    struct tally tally = { .seconds = 1 };
    size_t at = 0;
    if (before)
        tally.seconds = (double)(now->read_ns - before->read_ns) / 1e9;
    workers->count = workers->serving = workers->processes = 0;
    workers->most = workers->most_of_process = 0;
    for (size_t i = 0; i < s->part_count; i++) {
        const struct stats_part *part = &s->parts[i];
        if (part->owner > 0 && part->owner != s->master && part->requests > 0)
            add_worker(workers, &tally, find_before(before, &at, part), part);
    }
    workers->fairness = top_rates_fairness(workers->serving, tally.sum, tally.squares);
}
