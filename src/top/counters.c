/* SPDX-License-Identifier: MIT
 *
 * All counters, one in each line, with a chart of the selected one.
 */
#include "top/screens.h"

#include "base/escape.h"
#include "top/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LINES_MAX = STATS_PAIRS + STATS_COUNTERS + STATS_CERTIFICATES_MAX,
    CHART_ROWS = 2,
    CHART_FROM_ROWS = 12
};

/* The content of a line. */
struct item {
    char name[48];
    const char *unit, *sentence;
    uint64_t value;
    double rate;
    int series; /* -1: none */
};

struct list {
    unsigned count;
    struct item item[LINES_MAX];
};

static struct item *append_item(struct list *list, const char *name, const char *unit,
                                const char *sentence)
{
    struct item *item = &list->item[list->count++];
    snprintf(item->name, sizeof(item->name), "%s", name);
    for (char *at = item->name; *at; at++)
        if (*at == '_')
            *at = ' ';
    item->unit = unit;
    item->sentence = sentence;
    item->rate = NAN;
    item->series = -1;
    return item;
}

static struct item *append_about(struct list *list, const struct stats_counter_about *about)
{
    return append_item(list, about->name, about->unit, about->sentence);
}

static void add_section(struct list *list, const struct top_frame *frame,
                        enum stats_section section)
{
    const struct stats_snapshot *s = frame->now->snapshot;
    for (unsigned i = 0; i < STATS_PAIRS; i++) {
        if (stats_pairs[i].about.section != section)
            continue;
        struct item *item = append_about(list, &stats_pairs[i].about);
        item->value = s->pair[i];
        item->series = TOP_SERIES_PAIRS + (int)i;
    }
    for (unsigned i = 0; i < STATS_NAMED; i++) {
        if (stats_counters[i].section != section)
            continue;
        struct item *item = append_about(list, &stats_counters[i]);
        item->value = s->counter[i];
        item->rate = frame->rates.counter[i];
        item->series = TOP_SERIES_COUNTERS + (int)i;
    }
}

/* Statuses that no answer has had are left out. */
static void add_statuses(struct list *list, const struct top_frame *frame, unsigned first,
                         const char *word, const char *sentence)
{
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        uint64_t value = frame->now->snapshot->counter[first + i];
        if (value == 0)
            continue;
        char name[40];
        snprintf(name, sizeof(name), "%s %u", word, stats_statuses[i]);
        struct item *item = append_item(list, name, "answers", sentence);
        item->value = value;
        item->rate = frame->rates.counter[first + i];
    }
}

/* After its end a certificate has 0 days left. */
static void add_certificates(struct list *list, const struct view *view)
{
    for (unsigned i = 0; i < view->snapshot->certificate_count; i++) {
        const struct stats_certificate *one = &view->snapshot->certificate[i];
        double days = view_days_left(view, one);
        char name[48], text[sizeof(one->name) * 4];
        text[escape_text(text, sizeof(text) - 1, span_text(one->name), ESCAPE_TEXT)] = '\0';
        (void)snprintf(name, sizeof(name), "%s %.39s", one->key, text);
        struct item *item = append_item(list, name, "days",
                                        "Days until this certificate ends. Its key, and its name.");
        item->value = days > 0 ? (uint64_t)days : 0;
    }
}

static void fill_list(struct list *list, const struct top_frame *frame)
{
    list->count = 0;
    for (unsigned i = 0; i < STATS_SECTION_Latency; i++) {
        add_section(list, frame, (enum stats_section)i);
        if (i == STATS_SECTION_TLS)
            add_certificates(list, frame->now);
        if (i != STATS_SECTION_Requests)
            continue;
        add_statuses(list, frame, STATS_STATUS_FIRST, "status", "Answers with this status.");
        add_statuses(list, frame, STATS_UNREADABLE_FIRST, "unreadable",
                     "Answers with this status to requests that could not be read.");
    }
}

static bool is_bytes(const struct item *item)
{
    return strcmp(item->unit, "bytes") == 0;
}

enum { NAME_AT = 1, NAME_END = 26, RATE_WIDTH = 14, TOTAL_WIDTH = 19 };

static void draw_item(struct top_canvas *canvas, unsigned row, const struct item *item, bool chosen)
{
    unsigned rate_end = NAME_END + (canvas->columns < 56 ? 13 : RATE_WIDTH);
    enum top_style style = item->rate > 0 ? TOP_BOLD : TOP_PLAIN;
    char text[48] = "";
    top_canvas_text(canvas, row, NAME_AT, NAME_END, TOP_PLAIN, item->name);
    if (!isnan(item->rate))
        snprintf(text, sizeof(text), "%s/s",
                 is_bytes(item) ? top_format_bytes(item->rate).text
                                : top_format_rate(item->rate).text);
    top_canvas_right(canvas, row, rate_end, style, text);
    if (rate_end + TOTAL_WIDTH < canvas->columns) {
        top_canvas_right(canvas, row, rate_end + TOTAL_WIDTH, TOP_PLAIN,
                         top_format_count(item->value).text);
        top_canvas_text(canvas, row, rate_end + TOTAL_WIDTH + 1, canvas->columns, TOP_DIM,
                        item->unit);
    } else if (text[0] == '\0') {
        top_canvas_right(canvas, row, rate_end, TOP_PLAIN, top_format_count(item->value).text);
    }
    if (chosen)
        top_canvas_paint(canvas, row, TOP_SELECTED);
}

static void draw_item_chart(const struct top_frame *frame, struct top_canvas *canvas, unsigned row,
                            const struct item *item)
{
    float values[TOP_COLUMNS_MAX];
    unsigned width = canvas->columns - 2;
    if (item->series < 0)
        return;
    top_history_chart(&frame->history, (enum top_series)item->series, frame->now->read_ns,
                      frame->state.interval_ns, values, width);
    top_canvas_spark(canvas, row, 1, CHART_ROWS, values, width, TOP_ACCENT);
}

const char *top_counters_draw(struct top_frame *frame, struct top_canvas *canvas,
                              struct top_area area)
{
    struct list list;
    struct top_choice *choice = &frame->state.choice[TOP_COUNTERS];
    bool charted = area.rows >= CHART_FROM_ROWS;
    unsigned page = area.rows - (charted ? CHART_ROWS + 1 : 0);
    fill_list(&list, frame);
    top_state_settle(choice, list.count, page);
    for (unsigned i = 0; i < page && choice->first + i < list.count; i++)
        draw_item(canvas, area.row + i, &list.item[choice->first + i],
                  choice->first + i == choice->line);
    const struct item *chosen = &list.item[choice->line];
    if (charted)
        draw_item_chart(frame, canvas, area.row + area.rows - 1, chosen);
    return chosen->sentence;
}
