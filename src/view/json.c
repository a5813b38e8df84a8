/* SPDX-License-Identifier: MIT
 *
 * `weir stats --json`: one object. Names and meanings are those of
 * docs/stats-json.md; `schema` changes when one of them goes.
 */
#include "view/view.h"

#include "log/escape.h"
#include "view/advice.h"
#include "view/verdict.h"

#include <inttypes.h>

enum { SCHEMA = 1 };

/* An object or array: what stands before its next member. */
struct list {
    FILE *out;
    bool any;
};

static void next(struct list *list)
{
    if (list->any)
        fputc(',', list->out);
    list->any = true;
}

static void print_text(FILE *out, const char *text)
{
    char escaped[STATS_TEXT_MAX * 6];
    size_t len = log_escape(escaped, sizeof(escaped), span_text(text), LOG_ESCAPE_JSON);
    fputc('"', out);
    fwrite(escaped, 1, len, out);
    fputc('"', out);
}

static void add_number(struct list *list, const char *name, uint64_t value)
{
    next(list);
    fprintf(list->out, "\"%s\":%" PRIu64, name, value);
}

static void add_seconds(struct list *list, const char *name, uint64_t ns)
{
    next(list);
    fprintf(list->out, "\"%s\":%" PRIu64 ".%09" PRIu64, name, ns / 1000000000, ns % 1000000000);
}

static void add_text(struct list *list, const char *name, const char *text)
{
    next(list);
    fprintf(list->out, "\"%s\":", name);
    print_text(list->out, text);
}

static struct list begin(struct list *list, const char *name, char bracket)
{
    next(list);
    if (name)
        fprintf(list->out, "\"%s\":", name);
    fputc(bracket, list->out);
    return (struct list){ list->out, false };
}

static void add_durations(struct list *list, const char *name, const struct stats_counts *counts)
{
    static const struct {
        const char *name;
        double part;
    } quantiles[] = {
        { "p50_seconds", 0.5 },    { "p90_seconds", 0.9 }, { "p99_seconds", 0.99 },
        { "p999_seconds", 0.999 }, { "max_seconds", 1 },
    };
    struct list object = begin(list, name, '{');
    add_number(&object, "count", counts->count);
    add_seconds(&object, "sum_seconds", counts->sum_ns);
    for (unsigned i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        add_seconds(&object, quantiles[i].name,
                    stats_counts_quantile_ns(counts, quantiles[i].part));
    fputc('}', list->out);
}

static void add_by_status(struct list *list, const char *name, const struct stats_snapshot *s,
                          unsigned first)
{
    struct list object = begin(list, name, '{');
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        char code[8];
        snprintf(code, sizeof(code), "%u", stats_statuses[i]);
        add_number(&object, code, s->counter[first + i]);
    }
    fputc('}', list->out);
}

static void add_by_cause(struct list *list, const struct stats_snapshot *s)
{
    struct list object = begin(list, "refused_by_cause", '{');
    for (unsigned i = 0; i < STATS_FAULTS; i++)
        add_number(&object, stats_faults[i].name, s->counter[STATS_FAULT_FIRST + i]);
    fputc('}', list->out);
}

static void add_counters(struct list *list, const uint64_t counter[STATS_NAMED])
{
    struct list counters = begin(list, "counters", '{');
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].kind == STATS_KIND_COUNTER)
            add_number(&counters, stats_counters[i].name, counter[i]);
    fputc('}', list->out);
    struct list gauges = begin(list, "gauges", '{');
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        add_number(&gauges, stats_pairs[i].about.name, stats_pair_value(i, counter));
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].kind == STATS_KIND_GAUGE)
            add_number(&gauges, stats_counters[i].name, counter[i]);
    fputc('}', list->out);
}

static void add_classes(struct list *list, const uint64_t by_class[5])
{
    static const char *const classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };
    for (unsigned i = 0; i < 5; i++)
        add_number(list, classes[i], by_class[i]);
}

static void add_site(struct list *sites, const struct stats_site *site)
{
    struct list object = begin(sites, NULL, '{');
    add_text(&object, "name", site->name);
    add_number(&object, "requests", site->requests);
    add_classes(&object, site->by_class);
    add_number(&object, "body_bytes", site->body_bytes);
    add_durations(&object, "latency", &site->latency);
    fputc('}', sites->out);
}

static void add_generation(struct list *list, const struct view *view)
{
    const struct stats_generation *g = view_serving(view);
    char hash[20];
    snprintf(hash, sizeof(hash), "%016" PRIx64, g->configuration);
    struct list object = begin(list, "configuration", '{');
    add_number(&object, "number", view->snapshot->generation);
    add_text(&object, "hash", hash);
    add_text(&object, "model", g->model);
    add_number(&object, "workers", g->workers);
    add_number(&object, "threads_in_each", g->threads);
    add_number(&object, "started_unix_seconds", (uint64_t)g->started_s);
    fputc('}', list->out);
}

static void add_reload(struct list *list, const struct stats_snapshot *s)
{
    if (s->reloaded_s <= 0)
        return;
    struct list object = begin(list, "last_reload", '{');
    add_number(&object, "at_unix_seconds", (uint64_t)s->reloaded_s);
    next(&object);
    fprintf(list->out, "\"failed\":%s", s->reload_failed ? "true" : "false");
    add_text(&object, "error", s->reload_error);
    fputc('}', list->out);
}

static void add_about(struct list *about, const struct stats_counter_about *of)
{
    struct list object = begin(about, of->name, '{');
    add_text(&object, "section", stats_sections[of->section]);
    add_text(&object, "unit", of->unit);
    add_text(&object, "sentence", of->sentence);
    fputc('}', about->out);
}

/* Section by section, what there is now before what there has been. */
static void add_abouts(struct list *list)
{
    struct list about = begin(list, "about", '{');
    for (unsigned section = 0; section < STATS_SECTIONS; section++) {
        for (unsigned i = 0; i < STATS_PAIRS; i++)
            if (stats_pairs[i].about.section == section)
                add_about(&about, &stats_pairs[i].about);
        for (unsigned i = 0; i < STATS_NAMED; i++)
            if (stats_counters[i].section == section)
                add_about(&about, &stats_counters[i]);
        for (unsigned i = 0; i < STATS_HISTOGRAMS; i++)
            if (stats_histograms[i].section == section)
                add_about(&about, &stats_histograms[i]);
    }
    fputc('}', list->out);
}

static void add_usage(struct list *list, const struct view_usage *usage)
{
    struct list object = begin(list, "machine", '{');
    add_number(&object, "processes", usage->processes);
    add_seconds(&object, "cpu_user_seconds", usage->user_ns);
    add_seconds(&object, "cpu_system_seconds", usage->system_ns);
    add_number(&object, "resident_bytes", usage->resident_bytes);
    add_number(&object, "descriptors", usage->files);
    add_number(&object, "descriptors_fullest", usage->files_most);
    add_number(&object, "descriptors_fullest_limit", usage->files_limit);
    fputc('}', list->out);
}

static void add_verdicts(struct list *list, const struct view *view)
{
    struct view_verdict found[VIEW_VERDICTS_MAX];
    size_t count = view_verdicts(view, view->before, found);
    struct list verdicts = begin(list, "verdicts", '[');
    for (size_t i = 0; i < count; i++) {
        struct list object = begin(&verdicts, NULL, '{');
        add_text(&object, "gravity", view_gravity_name(found[i].gravity));
        add_text(&object, "rule", found[i].rule);
        add_text(&object, "text", found[i].text);
        add_text(&object, "why", found[i].why);
        add_text(&object, "cure", found[i].cure);
        fputc('}', list->out);
    }
    fputc(']', list->out);
}

static void add_advice(struct list *list, const struct view *view)
{
    static const char *const names[VIEW_SIZES] = { "half", "same", "double", "quadruple" };
    struct view_advice advice = view_advice_of(view);
    char text[VIEW_ADVICE_MAX];
    view_advice_say(view, text);
    struct list object = begin(list, "cache_advice", '{');
    add_text(&object, "text", text);
    for (unsigned i = 0; advice.known && i < VIEW_SIZES; i++) {
        struct list size = begin(&object, names[i], '{');
        add_number(&size, "cache_bytes", advice.cache_bytes[i]);
        next(&size);
        fprintf(list->out, "\"hit_ratio\":%.4f", advice.hit_ratio[i]);
        fputc('}', list->out);
    }
    fputc('}', list->out);
}

static void add_processes(struct list *list, const struct view *view)
{
    struct list processes = begin(list, "processes", '[');
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *process = &view->process[i];
        struct list object = begin(&processes, NULL, '{');
        add_number(&object, "pid", (uint64_t)process->pid);
        next(&object);
        fprintf(list->out, "\"master\":%s",
                process->pid == view->snapshot->master ? "true" : "false");
        add_seconds(&object, "cpu_seconds", process->cpu_ns);
        add_number(&object, "requests", process->requests);
        add_number(&object, "threads", process->threads);
        fputc('}', list->out);
    }
    fputc(']', list->out);
}

static void add_moment(struct list *moments, const struct stats_moment *moment, uint64_t read_ns)
{
    static const char *const quantiles[STATS_MOMENT_QUANTILES] = { "p50_seconds", "p90_seconds",
                                                                   "p99_seconds", "p999_seconds" };
    struct list object = begin(moments, NULL, '{');
    add_seconds(&object, "seconds_ago", read_ns > moment->at_ns ? read_ns - moment->at_ns : 0);
    add_counters(&object, moment->counter);
    add_classes(&object, moment->by_class);
    struct list latency = begin(&object, "latency", '{');
    add_number(&latency, "count", moment->latency_count);
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        add_seconds(&latency, quantiles[i], moment->latency_ns[i]);
    fputs("}}", moments->out);
}

static void add_moments(struct list *list, const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    struct list moments = begin(list, "moments", '[');
    for (unsigned i = 0; i < s->moment_count; i++)
        add_moment(&moments, &s->moment[i], view->read_ns);
    fputc(']', list->out);
}

void view_print_json(const struct view *view, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    struct list top = { out, false };
    fputc('{', out);
    add_number(&top, "schema", SCHEMA);
    add_text(&top, "weir", s->weir);
    add_number(&top, "pid", (uint64_t)s->master);
    next(&top);
    fprintf(out, "\"running\":%s", s->running ? "true" : "false");
    add_text(&top, "state", view_state(view));
    add_number(&top, "started_unix_seconds", (uint64_t)s->started_s);
    add_number(&top, "read_unix_seconds", (uint64_t)view->read_s);
    add_seconds(&top, "read_monotonic_seconds", view->read_ns);
    add_seconds(&top, "master_seen_seconds_ago", view->beat_age_ns);
    add_number(&top, "unseen_writers", s->unseen);
    add_verdicts(&top, view);
    add_generation(&top, view);
    add_reload(&top, s);
    add_counters(&top, s->counter);
    add_advice(&top, view);
    add_by_status(&top, "answers_by_status", s, STATS_STATUS_FIRST);
    add_by_status(&top, "unreadable_by_status", s, STATS_UNREADABLE_FIRST);
    add_by_cause(&top, s);
    struct list durations = begin(&top, "durations", '{');
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++)
        add_durations(&durations, stats_histograms[i].name, &s->histogram[i]);
    fputc('}', out);
    struct list sites = begin(&top, "sites", '[');
    for (unsigned i = 0; i < s->site_count; i++)
        add_site(&sites, &s->site[i]);
    fputc(']', out);
    if (s->running)
        add_usage(&top, &view->usage);
    add_processes(&top, view);
    add_moments(&top, view);
    add_abouts(&top);
    fputs("}\n", out);
}
