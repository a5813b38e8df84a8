/* SPDX-License-Identifier: MIT */
#include "top/frame.h"

#include "base/duration.h"
#include "top/format.h"
#include "top/screens.h"

#include <stdio.h>
#include <string.h>

/* A heartbeat comes once a second. */
#define HANGS_NS (5 * DURATION_SECOND)

/* How long the news of a successor is shown. */
#define TAKEN_NS (30 * DURATION_SECOND)

typedef const char *draw_screen(struct top_frame *, struct top_canvas *, struct top_area);

static draw_screen *const screens[TOP_SCREENS] = {
    [TOP_OVERVIEW] = top_overview_draw, [TOP_COUNTERS] = top_counters_draw,
    [TOP_SITES] = top_sites_draw,       [TOP_WORKERS] = top_workers_draw,
    [TOP_LATENCY] = top_latency_draw,   [TOP_RECENT] = top_recent_draw,
};

static uint64_t heartbeat_age_ns(const struct top_frame *frame)
{
    uint64_t heartbeat_ns = frame->now->snapshot->heartbeat_ns;
    return frame->clock_ns > heartbeat_ns ? frame->clock_ns - heartbeat_ns : 0;
}

static bool hangs(const struct top_frame *frame)
{
    return frame->health == TOP_HEALTH_RUNS && !frame->state.paused &&
           heartbeat_age_ns(frame) > HANGS_NS;
}

static void draw_title(const struct top_frame *frame, struct top_canvas *canvas)
{
    const struct stats_snapshot *s = frame->now->snapshot;
    const struct stats_generation *g = &s->generations[s->generation % STATS_GENERATIONS_MAX];
    char left[128], right[96];
    int len = snprintf(left, sizeof(left), "weir %s  process %d", s->weir, (int)s->master);
    if (s->generation > 0)
        snprintf(left + len, sizeof(left) - (size_t)len, "  %s, %u worker%s x %u", g->model,
                 g->workers, g->workers == 1 ? "" : "s", g->threads);
    int64_t up_s = frame->now->read_s - s->started_s;
    struct top_text up = top_format_span(up_s > 0 ? (uint64_t)up_s * DURATION_SECOND : 0);
    struct top_text every = top_format_span(frame->state.interval_ns);
    snprintf(right, sizeof(right), "up %s, every %s", up.text, every.text);
    if (strlen(left) + strlen(right) + 4 > canvas->columns)
        snprintf(right, sizeof(right), "every %s", every.text);
    unsigned end = canvas->columns - 1, begin = end - (unsigned)strlen(right);
    top_canvas_text(canvas, 0, 1, begin - 1, TOP_PLAIN, left);
    top_canvas_text(canvas, 0, begin, end, TOP_PLAIN, right);
    top_canvas_paint(canvas, 0, TOP_TITLE);
}

static void draw_names(const struct top_frame *frame, struct top_canvas *canvas)
{
    unsigned at = 1;
    for (unsigned i = 0; i < TOP_SCREENS; i++) {
        bool shown = i == frame->state.screen && !frame->state.help;
        /* A narrow terminal has room for the name of the selected screen only. */
        bool named = canvas->columns >= 64 || i == frame->state.screen;
        at = top_canvas_print(canvas, 1, at, shown ? TOP_SELECTED : TOP_PLAIN, " %u%s%s ", i + 1,
                              named ? " " : "", named ? top_screen_names[i] : "");
    }
}

/* Writes the news about the server, if there is any, and its style. */
static bool news(const struct top_frame *frame, char *text, size_t size, enum top_style *ret_style)
{
    bool overview = frame->state.screen == TOP_OVERVIEW; /* shows all verdicts itself */
    const struct stats_snapshot *s = frame->now->snapshot;
    const char *then = frame->waits ? "; waiting for another" : "";
    bool follows = frame->predecessor != 0 && frame->clock_ns - frame->taken_ns < TAKEN_NS;
    *ret_style = TOP_BAD;
    if (frame->health == TOP_HEALTH_GONE)
        snprintf(text, size, "STOPPED: process %d has gone%s. These are its last numbers.",
                 (int)s->master, then);
    else if (frame->health == TOP_HEALTH_DIED)
        snprintf(text, size, "DIED: process %d was killed%s. These are its last numbers.",
                 (int)s->master, then);
    else if (hangs(frame))
        snprintf(text, size, "HANGS: the last heartbeat of the master was %s ago.",
                 top_format_span(heartbeat_age_ns(frame)).text);
    else if (frame->state.paused)
        snprintf(text, size, "PAUSED %s ago. Press space to continue.",
                 top_format_span(frame->clock_ns - frame->now->read_ns).text);
    else if (follows)
        snprintf(text, size, "FOLLOWED: process %d has taken the place of %d.", (int)s->master,
                 (int)frame->predecessor);
    else if (frame->verdict_count > 0 && frame->verdict[0].gravity > VIEW_NOTE && !overview)
        snprintf(text, size, "%s", frame->verdict[0].text);
    else
        return false;
    if ((frame->state.paused || follows) && frame->health == TOP_HEALTH_RUNS && !hangs(frame))
        *ret_style = TOP_NOTICE;
    return true;
}

static void draw_keys(struct top_canvas *canvas)
{
    static const struct {
        const char *key, *what;
    } keys[] = {
        { "q", "quit" },      { "?", "help" },         { "1-6", "screens" },
        { "+-", "interval" }, { "up/down", "choose" }, { "space", "pause" },
    };
    unsigned row = canvas->rows - 1, at = 1;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (at + strlen(keys[i].key) + strlen(keys[i].what) + 1 > canvas->columns)
            break;
        at = top_canvas_print(canvas, row, at, TOP_BOLD, "%s", keys[i].key);
        at = top_canvas_print(canvas, row, at, TOP_DIM, " %s", keys[i].what) + 2;
    }
}

/* ---- the help ---- */

static const struct {
    const char *key, *what;
} help[] = {
    { "1 to 6", "the screen with that number" },
    { "Tab, left, right", "the next or the previous screen" },
    { "up, down, k, j", "select a line; its meaning is shown below" },
    { "PgUp, PgDn, g, G", "a page up or down, the first or the last line" },
    { "+, -", "read less often, or more often" },
    { "space", "pause, or continue" },
    { "?, h", "show or hide this help" },
    { "q, Ctrl-C", "quit" },
    { "Ctrl-Z", "suspend, until fg" },
};
enum { HELP_LINES = sizeof(help) / sizeof(help[0]), KEY_AT = 1, WHAT_AT = 19 };

static const char *draw_help(struct top_frame *frame, struct top_canvas *canvas,
                             struct top_area area)
{
    (void)frame;
    for (unsigned i = 0; i < HELP_LINES && i < area.rows; i++) {
        top_canvas_text(canvas, area.row + i, KEY_AT, WHAT_AT, TOP_BOLD, help[i].key);
        top_canvas_text(canvas, area.row + i, WHAT_AT, canvas->columns, TOP_PLAIN, help[i].what);
    }
    return "Rates and percentiles cover the time between two readings. Charts have one column for "
           "each interval. See weir-top(1).";
}

/* ---- all of it ---- */

static void draw_too_small(struct top_canvas *canvas)
{
    char text[96];
    snprintf(text, sizeof(text), "weir top needs %dx%d; this terminal is %ux%u. q quits.",
             TOP_COLUMNS_LEAST, TOP_ROWS_LEAST, canvas->columns, canvas->rows);
    top_canvas_wrap(canvas, 0, canvas->rows, 0, TOP_PLAIN, text);
}

void top_frame_draw(struct top_frame *frame, struct top_canvas *canvas)
{
    top_canvas_clear(canvas);
    if (canvas->rows < TOP_ROWS_LEAST || canvas->columns < TOP_COLUMNS_LEAST) {
        draw_too_small(canvas);
        return;
    }
    char text[sizeof(frame->verdict[0].text)];
    enum top_style style;
    unsigned explained = canvas->rows < 14 ? 1 : canvas->rows < 30 ? 2 : 3;
    struct top_area area = { .row = 2, .rows = canvas->rows - 3 - explained };
    draw_title(frame, canvas);
    draw_names(frame, canvas);
    if (news(frame, text, sizeof(text), &style)) {
        top_canvas_text(canvas, area.row, 1, canvas->columns, style, text);
        area.row++;
        area.rows--;
    } else if (canvas->rows >= 20) {
        area.row++;
        area.rows--;
    }
    draw_screen *draw = frame->state.help ? draw_help : screens[frame->state.screen];
    const char *meaning = draw(frame, canvas, area);
    top_canvas_wrap(canvas, canvas->rows - 1 - explained, explained, 1, TOP_DIM, meaning);
    draw_keys(canvas);
}
