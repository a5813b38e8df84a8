/* SPDX-License-Identifier: MIT
 *
 * The first screen: how much, how fast, how well, and by which workers.
 */
#include "top/screens.h"

#include "top/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns: a label, a number that ends before CHART, and the chart. */
enum { LABEL = 1, NUMBER_END = 24, CHART = 25, DETAIL = 20, WIDE = 76 };

struct place {
    const struct top_frame *frame;
    struct top_canvas *canvas;
    unsigned row, height; /* `row` is the lowest row; `height` is that of a chart */
};

typedef void draw_line(const struct place *place);

struct line {
    const char *label;
    const char *sentence;
    draw_line *draw;
};

/* ---- lines with a chart ---- */

typedef struct top_text format_number(double number);

static struct top_text format_ns(double ns)
{
    return top_format_duration((uint64_t)ns);
}

static struct top_text format_whole(double number)
{
    return top_format_count((uint64_t)(number + 0.5));
}

static void draw_line_chart(const struct place *place, enum top_series series, enum top_style style,
                            const char *detail, format_number *format)
{
    float values[TOP_COLUMNS_MAX];
    struct top_canvas *canvas = place->canvas;
    const struct top_frame *frame = place->frame;
    unsigned end = canvas->columns - 1;
    if (canvas->columns >= WIDE) {
        top_canvas_right(canvas, place->row, end, TOP_PLAIN, detail);
        end -= DETAIL;
    }
    unsigned width = end > CHART ? end - CHART : 0;
    top_history_chart(&frame->history, series, frame->now->read_ns, frame->state.interval_ns,
                      values, width);
    double most =
        (double)top_canvas_spark(canvas, place->row, CHART, place->height, values, width, style);
    if (place->height == 1 || !(most > 0))
        return;
    char scale[64];
    snprintf(scale, sizeof(scale), "at most %s", format(most).text);
    if (canvas->columns >= WIDE)
        top_canvas_right(canvas, place->row + 1 - place->height, canvas->columns - 1, TOP_DIM,
                         scale);
}

static void draw_number(const struct place *place, const char *text, const char *unit)
{
    char both[64];
    snprintf(both, sizeof(both), "%s %s", text, unit);
    top_canvas_right(place->canvas, place->row, NUMBER_END, TOP_BOLD, both);
}

static void draw_requests(const struct place *place)
{
    const struct top_frame *frame = place->frame;
    char detail[64];
    snprintf(detail, sizeof(detail), "%s",
             top_format_count(frame->now->snapshot->counter[STATS_requests]).text);
    draw_number(place, top_format_rate(frame->rates.counter[STATS_requests]).text, "/s");
    draw_line_chart(place, TOP_SERIES_COUNTERS + STATS_requests, TOP_ACCENT, detail,
                    top_format_rate);
}

static void draw_sent(const struct place *place)
{
    const struct top_frame *frame = place->frame;
    draw_number(place, top_format_bytes(frame->rates.counter[STATS_sent_bytes]).text, "/s");
    draw_line_chart(place, TOP_SERIES_COUNTERS + STATS_sent_bytes, TOP_ACCENT,
                    top_format_bytes((double)frame->now->snapshot->counter[STATS_sent_bytes]).text,
                    top_format_bytes);
}

static void draw_slowest(const struct place *place)
{
    const struct top_rates *rates = &place->frame->rates;
    char detail[64];
    snprintf(detail, sizeof(detail), "p99.9 %s", top_format_duration(rates->latency_ns[3]).text);
    draw_number(place, top_format_duration(rates->latency_ns[2]).text, "  ");
    draw_line_chart(place, (enum top_series)(TOP_SERIES_LATENCY + 2), TOP_NOTICE, detail,
                    format_ns);
}

static void draw_open(const struct place *place)
{
    const struct stats_snapshot *s = place->frame->now->snapshot;
    char detail[64];
    snprintf(detail, sizeof(detail), "%s active",
             top_format_count(s->pair[STATS_PAIR_connections_active]).text);
    draw_number(place, top_format_count(s->pair[STATS_PAIR_connections_open]).text, "  ");
    draw_line_chart(place, TOP_SERIES_PAIRS + STATS_PAIR_connections_open, TOP_ACCENT, detail,
                    format_whole);
}

/* ---- lines of fields ---- */

enum { FIELD = 16, FIELDS_AT = 12 };

/* Draws a name and a value, and returns the column of the next field. A field that does not fit is
 * left out. */
static unsigned draw_field(const struct place *place, unsigned at, const char *name,
                           enum top_style style, const char *value)
{
    unsigned width = (unsigned)(strlen(name) + strlen(value)) + 1;
    if (at + width >= place->canvas->columns)
        return place->canvas->columns;
    unsigned end = top_canvas_print(place->canvas, place->row, at, TOP_DIM, "%s ", name);
    end = top_canvas_text(place->canvas, place->row, end, place->canvas->columns, style, value);
    return end + 2 > at + FIELD ? end + 2 : at + FIELD;
}

static unsigned draw_rate(const struct place *place, unsigned at, const char *name, double rate,
                          enum top_style style)
{
    char text[40];
    snprintf(text, sizeof(text), "%s/s", top_format_rate(rate).text);
    return draw_field(place, at, name, rate > 0 ? style : TOP_PLAIN, text);
}

static void draw_percentiles(const struct place *place)
{
    static const char *const names[] = { "p50", "p90", "p99", "p99.9" };
    unsigned at = FIELDS_AT;
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        at = draw_field(place, at, names[i], TOP_BOLD,
                        top_format_duration(place->frame->rates.latency_ns[i]).text);
}

static void draw_answers(const struct place *place)
{
    static const struct {
        const char *name;
        unsigned class;
        enum top_style style;
    } classes[] = {
        { "2xx", 1, TOP_GOOD },
        { "3xx", 2, TOP_PLAIN },
        { "4xx", 3, TOP_NOTICE },
        { "5xx", 4, TOP_BAD },
    };
    unsigned at = FIELDS_AT;
    for (unsigned i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        double rate = place->frame->rates.by_class[classes[i].class];
        at = draw_rate(place, at, classes[i].name, rate, classes[i].style);
    }
}

static void draw_http2(const struct place *place)
{
    const struct stats_snapshot *s = place->frame->now->snapshot;
    const double *rate = place->frame->rates.counter;
    if (s->counter[STATS_http2_connections_begun] == 0) {
        top_canvas_print(place->canvas, place->row, FIELDS_AT, TOP_DIM,
                         "no connection has spoken HTTP/2");
        return;
    }
    unsigned at = draw_field(place, FIELDS_AT, "streams", TOP_BOLD,
                             top_format_count(s->pair[STATS_PAIR_http2_streams_open]).text);
    at = draw_field(place, at, "on", TOP_PLAIN,
                    top_format_count(s->pair[STATS_PAIR_http2_connections_open]).text);
    at = draw_rate(place, at, "requests", rate[STATS_requests_http_2], TOP_PLAIN);
    at = draw_rate(place, at, "stalls", rate[STATS_http2_stalls], TOP_PLAIN);
    draw_rate(place, at, "floods", rate[STATS_http2_floods], TOP_BAD);
}

static void draw_cache(const struct place *place)
{
    const struct stats_snapshot *s = place->frame->now->snapshot;
    const double *rate = place->frame->rates.counter;
    double hits = rate[STATS_cache_hits], all = hits + rate[STATS_cache_misses];
    unsigned at = draw_field(place, FIELDS_AT, "hits", TOP_BOLD, top_format_share(hits, all).text);
    at = draw_field(place, at, "entries", TOP_PLAIN,
                    top_format_count(s->counter[STATS_cache_entries]).text);
    at = draw_field(place, at, "take", TOP_PLAIN,
                    top_format_bytes((double)s->counter[STATS_cache_bytes]).text);
    draw_rate(place, at, "evictions", rate[STATS_cache_evictions], TOP_PLAIN);
}

static void draw_queue(const struct place *place)
{
    const struct top_frame *frame = place->frame;
    const struct stats_snapshot *s = frame->now->snapshot;
    const struct stats_counts *waits = &frame->rates.histogram[STATS_HISTOGRAM_queue_wait];
    if (s->counter[STATS_queue_entered] == 0) {
        top_canvas_print(place->canvas, place->row, FIELDS_AT, TOP_DIM, "no connection has waited");
        return;
    }
    uint64_t length = s->pair[STATS_PAIR_queue_length];
    unsigned at = draw_field(place, FIELDS_AT, "length", length > 0 ? TOP_NOTICE : TOP_BOLD,
                             top_format_count(length).text);
    at = draw_field(place, at, "p50", TOP_PLAIN,
                    top_format_duration(stats_snapshot_quantile_ns(waits, 0.5)).text);
    at = draw_field(place, at, "p99", TOP_PLAIN,
                    top_format_duration(stats_snapshot_quantile_ns(waits, 0.99)).text);
    draw_rate(place, at, "entered", frame->rates.counter[STATS_queue_entered], TOP_PLAIN);
}

static void draw_machine(const struct place *place)
{
    const struct top_frame *frame = place->frame;
    const struct view_usage *usage = &frame->now->usage;
    char text[80];
    unsigned at =
        draw_field(place, FIELDS_AT, "CPU", TOP_BOLD, top_format_share(frame->machine.cpu, 1).text);
    at = draw_field(place, at, "memory", TOP_PLAIN,
                    top_format_bytes((double)usage->resident_bytes).text);
    snprintf(text, sizeof(text), "%s of %s", top_format_count(usage->files_most).text,
             top_format_count(usage->files_limit).text);
    at = draw_field(place, at, "files", TOP_PLAIN, usage->files_limit > 0 ? text : "-");
    at = draw_field(place, at, "processes", TOP_PLAIN, top_format_count(usage->processes).text);
    if (frame->now->snapshot->generation > 0)
        draw_field(place, at, "sandbox", TOP_PLAIN, view_serving(frame->now)->sandbox);
}

static void draw_fairness(const struct place *place)
{
    const struct top_workers *workers = &place->frame->workers;
    char text[40] = "-";
    if (!isnan(workers->fairness))
        snprintf(text, sizeof(text), "%.3f", workers->fairness);
    unsigned at = draw_field(place, FIELDS_AT, "fairness", TOP_BOLD, text);
    at = draw_field(place, at, "answering", TOP_PLAIN, top_format_count(workers->serving).text);
    snprintf(text, sizeof(text), "%s/s", top_format_rate(workers->most).text);
    draw_field(place, at, "busiest", TOP_PLAIN, text);
}

static const struct line lines[] = {
    { "Requests", "Requests answered, with any status: in a second, and in total.", draw_requests },
    { "Sent", "Bytes of answers handed to the kernel, heads and bodies: in a second, and in total.",
      draw_sent },
    { "p99",
      "99 of 100 requests took at most this long, from their first byte until the last byte of "
      "their answer was handed to the kernel.",
      draw_slowest },
    { "Open", "Connections open now. Those that are not active are idle.", draw_open },
    { "Latency",
      "How long the requests of the last interval took: half of them at most p50, 999 of 1,000 "
      "at most p99.9.",
      draw_percentiles },
    { "Answers", "Answers in a second by the class of their status.", draw_answers },
    { "HTTP/2",
      "Streams open now, and the connections that they are on. Streams stall on the client's "
      "windows; floods end connections.",
      draw_http2 },
    { "Cache",
      "Lookups that found the file in the cache, and the contents of the caches of all workers.",
      draw_cache },
    { "Queue", "Connections waiting for a thread (pool, prefork), and how long they waited.",
      draw_queue },
    { "Machine",
      "CPU time as a share of one CPU, memory, and open descriptors of the process nearest to "
      "its limit.",
      draw_machine },
    { "Workers",
      "Jain's index of fairness: 1 when all threads or processes answer equally many requests, "
      "1/n when one of n answers all.",
      draw_fairness },
};
enum { LINES = sizeof(lines) / sizeof(lines[0]), CHARTS = 4, CHART_ROWS_MAX = 4, BARS_MAX = 8 };

/* ---- verdicts ---- */

static void draw_verdict(const struct top_frame *frame, struct top_canvas *canvas, unsigned row,
                         unsigned index, bool chosen)
{
    static const struct {
        const char *mark;
        enum top_style style;
    } gravities[] = {
        [VIEW_NOTE] = { "note", TOP_PLAIN },
        [VIEW_WARNING] = { "warning", TOP_NOTICE },
        [VIEW_WRONG] = { "wrong", TOP_BAD },
    };
    const struct view_verdict *verdict = &frame->verdict[index];
    enum top_style style = gravities[verdict->gravity].style;
    top_canvas_text(canvas, row, LABEL, FIELDS_AT, chosen ? TOP_SELECTED : style,
                    gravities[verdict->gravity].mark);
    top_canvas_text(canvas, row, FIELDS_AT, canvas->columns, style, verdict->text);
}

/* ---- bars ---- */

/* Several processes have a bar each. A single process has one for each thread. */
static bool has_bar(const struct top_workers *workers, const struct top_worker *worker)
{
    return (worker->thread == 0) == (workers->processes > 1);
}

static unsigned bars_of(const struct top_workers *workers)
{
    unsigned bars = 0;
    for (size_t i = 0; i < workers->count && bars < BARS_MAX; i++)
        bars += has_bar(workers, &workers->worker[i]);
    return bars;
}

static void draw_bar(const struct top_workers *workers, const struct top_worker *worker,
                     struct top_canvas *canvas, unsigned row)
{
    double most = worker->thread == 0 ? workers->most_of_process : workers->most;
    char text[40];
    if (worker->thread == 0)
        top_canvas_print(canvas, row, LABEL + 1, TOP_DIM, "%d", (int)worker->pid);
    else
        top_canvas_print(canvas, row, LABEL + 1, TOP_DIM, "thread %u", worker->thread);
    snprintf(text, sizeof(text), "%s /s", top_format_rate(worker->rate).text);
    top_canvas_right(canvas, row, NUMBER_END, TOP_PLAIN, text);
    top_canvas_bar(canvas, row, CHART, canvas->columns - 1 - CHART,
                   most > 0 ? worker->rate / most : 0, TOP_ACCENT);
}

static void draw_bars(const struct top_frame *frame, struct top_canvas *canvas,
                      struct top_area area)
{
    const struct top_workers *workers = &frame->workers;
    unsigned drawn = 0;
    for (size_t i = 0; i < workers->count && drawn < area.rows; i++)
        if (has_bar(workers, &workers->worker[i]))
            draw_bar(workers, &workers->worker[i], canvas, area.row + drawn++);
}

/* ---- the screen ---- */

static const char *meaning_of(struct top_frame *frame, unsigned line)
{
    if (line >= frame->verdict_count)
        return lines[line - frame->verdict_count].sentence;
    const struct view_verdict *verdict = &frame->verdict[line];
    snprintf(frame->meaning, sizeof(frame->meaning), "Why: %s. Cure: %s.", verdict->why,
             verdict->cure);
    return frame->meaning;
}

/* Rows for each chart, after `taken` rows for everything else. */
static unsigned chart_rows(unsigned rows, unsigned taken)
{
    unsigned spare = rows > taken ? (rows - taken) / CHARTS : 0;
    return spare < CHART_ROWS_MAX ? 1 + spare : CHART_ROWS_MAX;
}

/* Returns the row after the line. */
static unsigned draw_line_at(const struct top_frame *frame, struct top_canvas *canvas, unsigned row,
                             unsigned height, unsigned index, bool chosen)
{
    struct place place = { frame, canvas, row, index < CHARTS ? height : 1 };
    place.row += place.height - 1;
    top_canvas_text(canvas, place.row, LABEL, FIELDS_AT, chosen ? TOP_SELECTED : TOP_PLAIN,
                    lines[index].label);
    lines[index].draw(&place);
    return place.row + 1;
}

const char *top_overview_draw(struct top_frame *frame, struct top_canvas *canvas,
                              struct top_area area)
{
    struct top_choice *choice = &frame->state.choice[TOP_OVERVIEW];
    unsigned wrong = (unsigned)frame->verdict_count, count = wrong + LINES;
    unsigned bars = bars_of(&frame->workers), gaps = 1 + (wrong > 0);
    gaps = area.rows >= count + gaps ? gaps : 0;
    unsigned height = chart_rows(area.rows, count + gaps + bars), row = area.row;
    top_state_settle(choice, count, area.rows < count ? area.rows : count);
    for (unsigned i = choice->first; i < choice->first + choice->page; i++) {
        bool chosen = i == choice->line;
        if (i < wrong)
            draw_verdict(frame, canvas, row++, i, chosen);
        else
            row = draw_line_at(frame, canvas, row, height, i - wrong, chosen);
        if (gaps > 0 && (i + 1 == wrong || i + 1 == wrong + CHARTS))
            row++;
    }
    unsigned used = row - area.row;
    draw_bars(frame, canvas, (struct top_area){ row, area.rows > used ? area.rows - used : 0 });
    return meaning_of(frame, choice->line);
}
