/* SPDX-License-Identifier: MIT
 *
 * The sites: the rate, latency and answers of each.
 */
#include "top/screens.h"

#include "top/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns after the name. Those that do not fit are left out, from the right. */
enum { NAME_AT = 1, NAME_LEAST = 14, NAME_MOST = 40, RIGHT = 1 };
static const struct {
    const char *title;
    unsigned width;
} columns[] = {
    { "req/s", 9 }, { "p99", 9 }, { "requests", 15 }, { "4xx", 11 }, { "5xx", 9 }, { "sent/s", 11 },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static unsigned shown_columns(const struct top_canvas *canvas, unsigned *ret_width)
{
    unsigned shown = 0, width = 0;
    while (shown < COLUMNS &&
           NAME_AT + NAME_LEAST + width + columns[shown].width + RIGHT <= canvas->columns)
        width += columns[shown++].width;
    *ret_width = width;
    return shown;
}

/* The column where the name ends and the numbers begin. */
static unsigned name_end(const struct top_canvas *canvas, unsigned width)
{
    unsigned end = canvas->columns - width - RIGHT;
    return end < NAME_AT + NAME_MOST ? end : NAME_AT + NAME_MOST;
}

struct numbers {
    char text[COLUMNS][40];
};

static void read_numbers(struct numbers *numbers, const struct top_frame *frame, unsigned index)
{
    static const struct stats_site nothing; /* a reload has added the site since */
    const struct stats_snapshot *earlier = frame->before ? frame->before->snapshot : NULL;
    const struct stats_site *now = &frame->now->snapshot->site[index];
    const struct stats_site *before = !earlier                      ? NULL
                                      : index < earlier->site_count ? &earlier->site[index]
                                                                    : &nothing;
    double seconds = frame->rates.seconds, rate = NAN, sent = NAN;
    uint64_t slow_ns = 0;
    if (before && seconds > 0) {
        struct stats_counts recent;
        rate = now->requests > before->requests
                   ? (double)(now->requests - before->requests) / seconds
                   : 0;
        sent = now->body_bytes > before->body_bytes
                   ? (double)(now->body_bytes - before->body_bytes) / seconds
                   : 0;
        top_rates_counts(&recent, &before->latency, &now->latency);
        slow_ns = stats_snapshot_quantile_ns(&recent, 0.99);
    }
    const struct top_text texts[COLUMNS] = {
        top_format_rate(rate),
        top_format_duration(slow_ns),
        top_format_count(now->requests),
        top_format_count(now->by_class[3]),
        top_format_count(now->by_class[4]),
        top_format_bytes(sent),
    };
    for (unsigned i = 0; i < COLUMNS; i++)
        memcpy(numbers->text[i], texts[i].text, sizeof(texts[i].text));
}

static void draw_site(const struct top_frame *frame, struct top_canvas *canvas, unsigned row,
                      unsigned index)
{
    unsigned width, shown = shown_columns(canvas, &width), end = name_end(canvas, width);
    const struct stats_site *site = &frame->now->snapshot->site[index];
    struct numbers numbers;
    read_numbers(&numbers, frame, index);
    top_canvas_text(canvas, row, NAME_AT, end - 1, index > 0 ? TOP_BOLD : TOP_DIM,
                    index > 0 ? site->name : "(none)");
    for (unsigned i = 0; i < shown; i++) {
        end += columns[i].width;
        enum top_style style = i == 3 && site->by_class[3] > 0   ? TOP_NOTICE
                               : i == 4 && site->by_class[4] > 0 ? TOP_BAD
                                                                 : TOP_PLAIN;
        top_canvas_right(canvas, row, end, style, numbers.text[i]);
    }
}

const char *top_sites_draw(struct top_frame *frame, struct top_canvas *canvas, struct top_area area)
{
    struct top_choice *choice = &frame->state.choice[TOP_SITES];
    unsigned count = frame->now->snapshot->site_count, page = area.rows - 1;
    unsigned width, shown = shown_columns(canvas, &width), end = name_end(canvas, width);
    top_canvas_text(canvas, area.row, NAME_AT, end, TOP_DIM, "site");
    for (unsigned i = 0; i < shown; i++) {
        end += columns[i].width;
        top_canvas_right(canvas, area.row, end, TOP_DIM, columns[i].title);
    }
    top_state_settle(choice, count, page);
    for (unsigned i = 0; i < page && choice->first + i < count; i++) {
        unsigned index = choice->first + i, row = area.row + 1 + i;
        draw_site(frame, canvas, row, index);
        if (index == choice->line)
            top_canvas_paint(canvas, row, TOP_SELECTED);
    }
    return choice->line == 0 ? "Answers that belong to no site: to requests that could not be "
                               "read, or for a host that no site has."
                             : "A site of the configuration. req/s, p99 and sent/s cover the last "
                               "interval, the other columns the time since the start.";
}
