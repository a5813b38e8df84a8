/* SPDX-License-Identifier: MIT
 *
 * `weir stats --json`: one object. docs/stats-json.md defines the names. `schema` changes when a
 * name is removed.
 */
#include "view/view.h"

#include "view/advice.h"
#include "view/recent.h"
#include "view/verdict.h"
#include "json/writer.h"

#include <inttypes.h>

enum { SCHEMA = 1 };

static void write_durations(struct json_writer *list, const char *name,
                            const struct stats_counts *counts)
{
    static const struct {
        const char *name;
        double part;
    } quantiles[] = {
        { "p50_seconds", 0.5 },    { "p90_seconds", 0.9 }, { "p99_seconds", 0.99 },
        { "p999_seconds", 0.999 }, { "max_seconds", 1 },
    };
    struct json_writer object = json_writer_begin(list, name, '{');
    json_writer_add_number(&object, "count", counts->count);
    json_writer_add_seconds(&object, "sum_seconds", counts->sum_ns);
    for (unsigned i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        json_writer_add_seconds(&object, quantiles[i].name,
                                stats_snapshot_quantile_ns(counts, quantiles[i].part));
    json_writer_end(&object, '}');
}

static void write_by_status(struct json_writer *list, const char *name,
                            const struct stats_snapshot *s, unsigned first)
{
    struct json_writer object = json_writer_begin(list, name, '{');
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        char code[8];
        snprintf(code, sizeof(code), "%u", stats_statuses[i]);
        json_writer_add_number(&object, code, s->counter[first + i]);
    }
    json_writer_end(&object, '}');
}

static void write_by_cause(struct json_writer *list, const struct stats_snapshot *s)
{
    struct json_writer object = json_writer_begin(list, "refused_by_cause", '{');
    for (unsigned i = 0; i < STATS_FAULTS; i++)
        json_writer_add_number(&object, stats_faults[i].name, s->counter[STATS_FAULT_FIRST + i]);
    json_writer_end(&object, '}');
    object = json_writer_begin(list, "http2_ended_by_cause", '{');
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++)
        json_writer_add_number(&object, stats_http2_faults[i].name,
                               s->counter[STATS_HTTP2_FAULT_FIRST + i]);
    json_writer_end(&object, '}');
}

static void write_counters(struct json_writer *list, const uint64_t counter[STATS_NAMED])
{
    struct json_writer counters = json_writer_begin(list, "counters", '{');
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].kind == STATS_KIND_COUNTER)
            json_writer_add_number(&counters, stats_counters[i].name, counter[i]);
    json_writer_end(&counters, '}');
    struct json_writer gauges = json_writer_begin(list, "gauges", '{');
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        json_writer_add_number(&gauges, stats_pairs[i].about.name, stats_counters_pair(i, counter));
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].kind == STATS_KIND_GAUGE)
            json_writer_add_number(&gauges, stats_counters[i].name, counter[i]);
    json_writer_end(&gauges, '}');
}

static void write_classes(struct json_writer *list, const uint64_t by_class[5])
{
    static const char *const classes[] = { "1xx", "2xx", "3xx", "4xx", "5xx" };
    for (unsigned i = 0; i < 5; i++)
        json_writer_add_number(list, classes[i], by_class[i]);
}

static void write_site(struct json_writer *sites, const struct stats_site *site)
{
    struct json_writer object = json_writer_begin(sites, NULL, '{');
    json_writer_add_text(&object, "name", site->name);
    json_writer_add_number(&object, "requests", site->requests);
    write_classes(&object, site->by_class);
    json_writer_add_number(&object, "body_bytes", site->body_bytes);
    write_durations(&object, "latency", &site->latency);
    json_writer_end(&object, '}');
}

static void write_certificates(struct json_writer *list, const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    struct json_writer certificates = json_writer_begin(list, "certificates", '[');
    for (unsigned i = 0; i < s->certificate_count; i++) {
        const struct stats_certificate *one = &s->certificate[i];
        struct json_writer object = json_writer_begin(&certificates, NULL, '{');
        json_writer_add_text(&object, "name", one->name);
        json_writer_add_text(&object, "key", one->key);
        json_writer_add_number(&object, "ends_unix_seconds", (uint64_t)one->ends_s);
        json_writer_add_real(&object, "days_left", view_days_left(view, one));
        json_writer_end(&object, '}');
    }
    json_writer_end(&certificates, ']');
}

static void write_urls(struct json_writer *list, const char *name, const char *urls)
{
    struct json_writer array = json_writer_begin(list, name, '[');
    for (struct span rest = span_text(urls), url; view_next_url(&rest, &url);)
        json_writer_add_span(&array, NULL, url);
    json_writer_end(&array, ']');
}

static void write_generation(struct json_writer *list, const struct view *view)
{
    static const char *const accepts[] = { "master", "one", "each" };
    static const char *const serves[] = { "loop", "pool", "thread", "process" };
    const struct stats_generation *g = view_serving(view);
    char hash[20];
    snprintf(hash, sizeof(hash), "%016" PRIx64, g->configuration);
    struct json_writer object = json_writer_begin(list, "configuration", '{');
    json_writer_add_number(&object, "number", view->snapshot->generation);
    json_writer_add_text(&object, "hash", hash);
    json_writer_add_text(&object, "model", g->model);
    json_writer_add_text(&object, "sandbox", g->sandbox);
    write_urls(&object, "urls", g->urls);
    write_urls(&object, "page_urls", g->page_urls);
    json_writer_add_text(&object, "accepts", accepts[g->accepts]);
    json_writer_add_text(&object, "serves", serves[g->serves]);
    json_writer_add_number(&object, "workers", g->workers);
    json_writer_add_number(&object, "threads_in_each", g->threads);
    json_writer_add_number(&object, "started_unix_seconds", (uint64_t)g->started_s);
    json_writer_add_seconds(&object, "slow_seconds", g->slow_ns);
    json_writer_end(&object, '}');
}

static void write_reload(struct json_writer *list, const struct stats_snapshot *s)
{
    if (s->reloaded_s <= 0)
        return;
    struct json_writer object = json_writer_begin(list, "last_reload", '{');
    json_writer_add_number(&object, "at_unix_seconds", (uint64_t)s->reloaded_s);
    json_writer_add_bool(&object, "failed", s->reload_failed);
    json_writer_add_text(&object, "error", s->reload_error);
    json_writer_end(&object, '}');
}

static void write_about(struct json_writer *about, const struct stats_counter_about *of)
{
    struct json_writer object = json_writer_begin(about, of->name, '{');
    json_writer_add_text(&object, "section", stats_sections[of->section]);
    json_writer_add_text(&object, "unit", of->unit);
    json_writer_add_text(&object, "sentence", of->sentence);
    json_writer_end(&object, '}');
}

/* By section; pairs come before counters. */
static void write_abouts(struct json_writer *list)
{
    struct json_writer about = json_writer_begin(list, "about", '{');
    for (unsigned section = 0; section < STATS_SECTIONS; section++) {
        for (unsigned i = 0; i < STATS_PAIRS; i++)
            if (stats_pairs[i].about.section == section)
                write_about(&about, &stats_pairs[i].about);
        for (unsigned i = 0; i < STATS_NAMED; i++)
            if (stats_counters[i].section == section)
                write_about(&about, &stats_counters[i]);
        for (unsigned i = 0; i < STATS_HISTOGRAMS; i++)
            if (stats_histograms[i].section == section)
                write_about(&about, &stats_histograms[i]);
    }
    json_writer_end(&about, '}');
}

static void write_usage(struct json_writer *list, const struct view_usage *usage)
{
    struct json_writer object = json_writer_begin(list, "machine", '{');
    json_writer_add_number(&object, "processes", usage->processes);
    json_writer_add_seconds(&object, "cpu_user_seconds", usage->user_ns);
    json_writer_add_seconds(&object, "cpu_system_seconds", usage->system_ns);
    json_writer_add_number(&object, "cpus", usage->cpus);
    json_writer_add_number(&object, "resident_bytes", usage->resident_bytes);
    json_writer_add_number(&object, "descriptors", usage->files);
    json_writer_add_number(&object, "descriptors_fullest", usage->files_most);
    json_writer_add_number(&object, "descriptors_fullest_limit", usage->files_limit);
    json_writer_end(&object, '}');
}

static void write_verdicts(struct json_writer *list, const struct view *view)
{
    struct view_verdict found[VIEW_VERDICTS_MAX];
    size_t count = view_verdicts(view, view->before, found);
    struct json_writer verdicts = json_writer_begin(list, "verdicts", '[');
    for (size_t i = 0; i < count; i++) {
        struct json_writer object = json_writer_begin(&verdicts, NULL, '{');
        json_writer_add_text(&object, "gravity", view_verdict_gravity_name(found[i].gravity));
        json_writer_add_text(&object, "rule", found[i].rule);
        json_writer_add_text(&object, "text", found[i].text);
        json_writer_add_text(&object, "why", found[i].why);
        json_writer_add_text(&object, "cure", found[i].cure);
        json_writer_end(&object, '}');
    }
    json_writer_end(&verdicts, ']');
}

static void write_advice(struct json_writer *list, const struct view *view)
{
    static const char *const names[VIEW_SIZES] = { "half", "same", "double", "quadruple" };
    struct view_advice advice = view_advice_of(view);
    char text[VIEW_ADVICE_MAX];
    view_advice_say(view, text);
    struct json_writer object = json_writer_begin(list, "cache_advice", '{');
    json_writer_add_text(&object, "text", text);
    for (unsigned i = 0; advice.known && i < VIEW_SIZES; i++) {
        struct json_writer size = json_writer_begin(&object, names[i], '{');
        json_writer_add_number(&size, "cache_bytes", advice.cache_bytes[i]);
        json_writer_next(&size, "hit_ratio");
        fprintf(list->out, "%.4f", advice.hit_ratio[i]);
        json_writer_end(&size, '}');
    }
    json_writer_end(&object, '}');
}

static void write_recent(struct json_writer *list, const struct view *view)
{
    struct view_answer found[VIEW_RECENT_MAX];
    size_t count = view_recent(view, found);
    struct json_writer recent = json_writer_begin(list, "recent", '[');
    for (size_t i = 0; i < count; i++) {
        const struct stats_answer *answer = found[i].answer;
        char id[20];
        snprintf(id, sizeof(id), "%016" PRIx64, answer->id);
        struct json_writer object = json_writer_begin(&recent, NULL, '{');
        json_writer_add_text(&object, "kind", view_recent_kind_name(found[i].kind));
        json_writer_add_seconds(&object, "seconds_ago", found[i].age_ns);
        json_writer_add_number(&object, "status", answer->status);
        json_writer_add_seconds(&object, "duration_seconds", answer->duration_ns);
        json_writer_add_seconds(&object, "disk_wait_seconds", answer->waited_ns);
        json_writer_add_number(&object, "body_bytes", answer->body_bytes);
        json_writer_add_span(&object, "request", span_of(answer->text, answer->text_len));
        json_writer_add_text(&object, "cause", found[i].cause);
        json_writer_add_text(&object, "site", found[i].site);
        json_writer_add_text(&object, "id", id);
        json_writer_end(&object, '}');
    }
    json_writer_end(&recent, ']');
}

static void write_processes(struct json_writer *list, const struct view *view)
{
    struct json_writer processes = json_writer_begin(list, "processes", '[');
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *process = &view->process[i];
        struct json_writer object = json_writer_begin(&processes, NULL, '{');
        json_writer_add_number(&object, "pid", (uint64_t)process->pid);
        json_writer_add_bool(&object, "master", process->pid == view->snapshot->master);
        json_writer_add_seconds(&object, "cpu_seconds", process->cpu_ns);
        json_writer_add_number(&object, "requests", process->requests);
        json_writer_add_number(&object, "threads", process->threads);
        json_writer_end(&object, '}');
    }
    json_writer_end(&processes, ']');
}

static void write_moment(struct json_writer *moments, const struct stats_moment *moment,
                         uint64_t read_ns)
{
    static const char *const quantiles[STATS_MOMENT_QUANTILES] = { "p50_seconds", "p90_seconds",
                                                                   "p99_seconds", "p999_seconds" };
    struct json_writer object = json_writer_begin(moments, NULL, '{');
    json_writer_add_seconds(&object, "seconds_ago",
                            read_ns > moment->at_ns ? read_ns - moment->at_ns : 0);
    write_counters(&object, moment->counter);
    write_classes(&object, moment->by_class);
    struct json_writer latency = json_writer_begin(&object, "latency", '{');
    json_writer_add_number(&latency, "count", moment->latency_count);
    for (unsigned i = 0; i < STATS_MOMENT_QUANTILES; i++)
        json_writer_add_seconds(&latency, quantiles[i], moment->latency_ns[i]);
    json_writer_end(&latency, '}');
    json_writer_end(&object, '}');
}

static void write_moments(struct json_writer *list, const struct view *view, uint64_t after_ns)
{
    const struct stats_snapshot *s = view->snapshot;
    struct json_writer moments = json_writer_begin(list, "moments", '[');
    for (unsigned i = 0; i < s->moment_count; i++)
        if (s->moment[i].at_ns > after_ns)
            write_moment(&moments, &s->moment[i], view->read_ns);
    json_writer_end(&moments, ']');
}

/* Writes all that changes, and leaves the object open. */
static struct json_writer begin_numbers(const struct view *view, uint64_t after_ns, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    struct json_writer top = json_writer_open(out, '{');
    json_writer_add_number(&top, "schema", SCHEMA);
    json_writer_add_text(&top, "weir", s->weir);
    json_writer_add_number(&top, "pid", (uint64_t)s->master);
    json_writer_add_bool(&top, "running", s->running);
    json_writer_add_text(&top, "state", view_state(view));
    json_writer_add_number(&top, "started_unix_seconds", (uint64_t)s->started_s);
    json_writer_add_number(&top, "read_unix_seconds", (uint64_t)view->read_s);
    json_writer_add_seconds(&top, "read_monotonic_seconds", view->read_ns);
    json_writer_add_seconds(&top, "master_seen_seconds_ago", view->heartbeat_age_ns);
    json_writer_add_number(&top, "unseen_writers", s->unseen);
    write_verdicts(&top, view);
    write_generation(&top, view);
    write_certificates(&top, view);
    write_reload(&top, s);
    write_counters(&top, s->counter);
    write_advice(&top, view);
    write_by_status(&top, "answers_by_status", s, STATS_STATUS_FIRST);
    write_by_status(&top, "unreadable_by_status", s, STATS_UNREADABLE_FIRST);
    write_by_cause(&top, s);
    struct json_writer durations = json_writer_begin(&top, "durations", '{');
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++)
        write_durations(&durations, stats_histograms[i].name, &s->histogram[i]);
    json_writer_end(&durations, '}');
    struct json_writer sites = json_writer_begin(&top, "sites", '[');
    for (unsigned i = 0; i < s->site_count; i++)
        write_site(&sites, &s->site[i]);
    json_writer_end(&sites, ']');
    if (s->running)
        write_usage(&top, &view->usage);
    write_processes(&top, view);
    write_recent(&top, view);
    write_moments(&top, view, after_ns);
    return top;
}

void view_print_json(const struct view *view, FILE *out)
{
    struct json_writer top = begin_numbers(view, 0, out);
    write_abouts(&top);
    fputs("}\n", out);
}

void view_print_json_after(const struct view *view, uint64_t after_ns, FILE *out)
{
    (void)begin_numbers(view, after_ns, out);
    fputs("}\n", out);
}
