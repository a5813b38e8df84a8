/* SPDX-License-Identifier: MIT
 *
 * Durations as a histogram, in steps of 1, 2 and 5 of each power of ten.
 */
#include "top/screens.h"

#include "top/format.h"

#include <stdio.h>
#include <string.h>

enum {
    STEPS = 31, /* up to 1 us, up to 2 us, and so on to 5,000 s; and everything longer */
    NAME_AT = 1,
    TO_END = 10,
    SHARE_END = 19,
    COUNT_END = 33,
    BAR = 35,
    MARKS = 18
};

struct steps {
    uint64_t upto_ns[STEPS], count[STEPS], total;
    unsigned first, last; /* steps that have ever counted anything */
};

static void fill_steps(struct steps *steps, const struct stats_counts *recent,
                       const struct stats_counts *all)
{
    uint64_t below = 0, all_below = 0, ns = 1000;
    *steps = (struct steps){ .first = STEPS, .total = recent->count };
    for (unsigned i = 0; i < STEPS; i++) {
        bool open = i == STEPS - 1;
        uint64_t upto = open ? recent->count : stats_snapshot_at_most(recent, ns);
        uint64_t all_upto = open ? all->count : stats_snapshot_at_most(all, ns);
        steps->upto_ns[i] = ns;
        steps->count[i] = upto - below;
        if (all_upto > all_below) {
            steps->last = i;
            steps->first = steps->first < i ? steps->first : i;
        }
        below = upto;
        all_below = all_upto;
        ns = i % 3 == 1 ? ns / 2 * 5 : ns * 2;
    }
}

/* Writes the names of the percentiles in a step, such as "p50 p90". */
static void read_marks(char *text, size_t size, const struct steps *steps, unsigned step,
                       const uint64_t quantile_ns[STATS_MOMENT_QUANTILES])
{
    static const char *const names[] = { "p50", "p90", "p99", "p99.9" };
    uint64_t above = step > 0 ? steps->upto_ns[step - 1] : 0;
    size_t len = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        if (steps->total > 0 && quantile_ns[i] > above &&
            (quantile_ns[i] <= steps->upto_ns[step] || step == STEPS - 1))
            len += (size_t)snprintf(text + len, size - len, "%s%s", len > 0 ? " " : "", names[i]);
}

static void draw_step(struct top_canvas *canvas, unsigned row, const struct steps *steps,
                      unsigned step, uint64_t most, const uint64_t *quantile_ns)
{
    char marks[32];
    uint64_t count = steps->count[step];
    if (step == STEPS - 1)
        top_canvas_right(canvas, row, TO_END, TOP_PLAIN, "longer");
    else
        top_canvas_right(canvas, row, TO_END, TOP_PLAIN,
                         top_format_duration(steps->upto_ns[step]).text);
    top_canvas_right(canvas, row, SHARE_END, TOP_PLAIN,
                     top_format_share((double)count, (double)steps->total).text);
    top_canvas_right(canvas, row, COUNT_END, TOP_DIM, top_format_count(count).text);
    read_marks(marks, sizeof(marks), steps, step, quantile_ns);
    unsigned end = canvas->columns - 1;
    if (canvas->columns > BAR + 2 * MARKS) {
        top_canvas_right(canvas, row, end, TOP_NOTICE, marks);
        end -= MARKS;
    }
    if (end > BAR)
        top_canvas_bar(canvas, row, BAR, end - BAR, most > 0 ? (double)count / (double)most : 0,
                       TOP_ACCENT);
}

static void draw_steps(struct top_canvas *canvas, struct top_area area, const struct steps *steps,
                       const struct stats_counts *recent)
{
    uint64_t quantile_ns[STATS_MOMENT_QUANTILES], most = 0;
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        quantile_ns[i] = stats_snapshot_quantile_ns(recent, top_quantiles[i]);
    for (unsigned i = 0; i < STEPS; i++)
        most = steps->count[i] > most ? steps->count[i] : most;
    for (unsigned i = 0; i < area.rows && steps->first + i <= steps->last; i++)
        draw_step(canvas, area.row + i, steps, steps->first + i, most, quantile_ns);
}

const char *top_latency_draw(struct top_frame *frame, struct top_canvas *canvas,
                             struct top_area area)
{
    struct top_choice *choice = &frame->state.choice[TOP_LATENCY];
    top_state_settle(choice, STATS_HISTOGRAMS, STATS_HISTOGRAMS);
    unsigned at = NAME_AT;
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++) {
        char name[40];
        snprintf(name, sizeof(name), " %s ", stats_histograms[i].name);
        if (strchr(name, '_'))
            *strchr(name, '_') = ' ';
        at = top_canvas_text(canvas, area.row, at, canvas->columns,
                             i == choice->line ? TOP_SELECTED : TOP_DIM, name);
    }
    const struct stats_counts *recent = &frame->rates.histogram[choice->line];
    const struct stats_counts *all = &frame->now->snapshot->histogram[choice->line];
    struct steps steps;
    fill_steps(&steps, recent, all);
    if (all->count == 0)
        top_canvas_print(canvas, area.row + 1, NAME_AT, TOP_DIM, "nothing has been measured yet");
    else
        draw_steps(canvas, (struct top_area){ area.row + 1, area.rows - 1 }, &steps, recent);
    return stats_histograms[choice->line].sentence;
}
