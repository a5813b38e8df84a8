/* SPDX-License-Identifier: MIT */
#include "top/history.h"

#include "base/duration.h"

#include <math.h>
#include <string.h>

/* A longer time without a reading is a gap, which the server's moments may fill. */
#define GAP_NS (5 * DURATION_SECOND / 2)

void top_history_totals_of(struct top_totals *totals, const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    *totals = (struct top_totals){ .at_ns = view->read_ns };
    memcpy(totals->counter, s->counter, sizeof(totals->counter));
    for (unsigned i = 0; i < s->site_count; i++)
        for (unsigned j = 0; j < 5; j++)
            totals->by_class[j] += s->site[i].by_class[j];
}

void top_history_totals_of_moment(struct top_totals *totals, const struct stats_moment *moment)
{
    totals->at_ns = moment->at_ns;
    memcpy(totals->counter, moment->counter, sizeof(totals->counter));
    memcpy(totals->by_class, moment->by_class, sizeof(totals->by_class));
}

/* Whether `b` can be later totals of the same server as `a`. */
static bool follows(const struct top_totals *a, const struct top_totals *b)
{
    return a->at_ns > 0 && b->at_ns > a->at_ns &&
           b->counter[STATS_requests] >= a->counter[STATS_requests];
}

static float rate_between(uint64_t from, uint64_t to, double seconds)
{
    return to > from ? (float)((double)(to - from) / seconds) : 0;
}

static void add_stretch(struct top_history *history, const struct top_totals *to,
                        const uint64_t latency_ns[STATS_MOMENT_QUANTILES])
{
    const struct top_totals *from = &history->last;
    if (follows(from, to)) {
        struct top_stretch *new = &history->stretch[history->next];
        double seconds = (double)(to->at_ns - from->at_ns) / 1e9;
        new->from_ns = from->at_ns;
        new->to_ns = to->at_ns;
        float *value = new->value;
        for (unsigned i = 0; i < STATS_NAMED; i++)
            value[TOP_SERIES_COUNTERS + i] =
                stats_counters[i].kind == STATS_KIND_GAUGE
                    ? (float)to->counter[i]
                    : rate_between(from->counter[i], to->counter[i], seconds);
        for (unsigned i = 0; i < STATS_PAIRS; i++)
            value[TOP_SERIES_PAIRS + i] = (float)stats_counters_pair(i, to->counter);
        for (unsigned i = 0; i < 5; i++)
            value[TOP_SERIES_CLASSES + i] =
                rate_between(from->by_class[i], to->by_class[i], seconds);
        for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
            value[TOP_SERIES_LATENCY + i] = (float)latency_ns[i];
        history->next = (history->next + 1) % TOP_STRETCHES;
        history->count += history->count < TOP_STRETCHES;
    }
    history->last = *to;
}

void top_history_go_on(struct top_history *history, const struct view *now,
                       const uint64_t latency_ns[STATS_MOMENT_QUANTILES])
{
    const struct stats_snapshot *s = now->snapshot;
    struct top_totals totals;
    bool gap = now->read_ns > history->last.at_ns + GAP_NS;
    for (unsigned i = 0; gap && i < s->moment_count; i++) {
        const struct stats_moment *moment = &s->moment[i];
        if (moment->at_ns <= history->last.at_ns || moment->at_ns > now->read_ns)
            continue;
        top_history_totals_of_moment(&totals, moment);
        add_stretch(history, &totals, moment->latency_ns);
    }
    top_history_totals_of(&totals, now);
    if (totals.at_ns > history->last.at_ns)
        add_stretch(history, &totals, latency_ns);
}

void top_history_break(struct top_history *history)
{
    history->last = (struct top_totals){ 0 };
}

/* ---- charts ---- */

static const struct top_stretch *stretch_at(const struct top_history *history, unsigned age)
{
    return &history->stretch[(history->next + TOP_STRETCHES - 1 - age) % TOP_STRETCHES];
}

/* The value of one step. Stretches from the age `first` on reach into the step or lie before it. */
static float step_value(const struct top_history *history, enum top_series series, uint64_t from_ns,
                        uint64_t to_ns, unsigned first)
{
    double sum = 0, known_ns = 0, most = 0;
    for (unsigned age = first; age < history->count; age++) {
        const struct top_stretch *each = stretch_at(history, age);
        if (each->to_ns <= from_ns)
            break;
        uint64_t begin = each->from_ns > from_ns ? each->from_ns : from_ns;
        uint64_t end = each->to_ns < to_ns ? each->to_ns : to_ns;
        if (end <= begin)
            continue;
        double value = each->value[series], ns = (double)(end - begin);
        sum += value * ns;
        known_ns += ns;
        most = value > most ? value : most;
    }
    if (known_ns == 0)
        return NAN;
    return (float)(series >= TOP_SERIES_LATENCY ? most : sum / known_ns);
}

void top_history_chart(const struct top_history *history, enum top_series series, uint64_t end_ns,
                       uint64_t step_ns, float *out, size_t count)
{
    unsigned age = 0;
    uint64_t to_ns = end_ns;
    for (size_t i = count; i-- > 0;) {
        uint64_t from_ns = to_ns > step_ns ? to_ns - step_ns : 0;
        while (age < history->count && stretch_at(history, age)->from_ns >= to_ns)
            age++;
        out[i] = to_ns > 0 ? step_value(history, series, from_ns, to_ns, age) : NAN;
        to_ns = from_ns;
    }
}
