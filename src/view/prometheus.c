/* SPDX-License-Identifier: MIT
 *
 * `weir stats --prometheus` (text format 0.0.4) and --openmetrics (OpenMetrics 1.0). The two
 * differ in the lines before the samples of a family, and in the end. Names are those of
 * counters.def, with weir_ in front and, for counters, _total behind.
 */
#include "base/duration.h"
#include "view/advice.h"
#include "view/view.h"

#include "base/span.h"

#include <inttypes.h>

/* Microseconds. A bucket counts all durations up to its bound. */
static const uint64_t bounds_us[] = {
    10,    25,    50,     100,    250,    500,     1000,    2500,    5000,     10000,
    25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
};

/* The output and its format. */
struct exposition {
    FILE *out;
    bool open;
};

/* OpenMetrics has a UNIT line where the name of the family ends in the unit. */
static const char *unit_of(struct span family)
{
    return span_ends(family, SPAN("_seconds")) ? "seconds"
           : span_ends(family, SPAN("_bytes")) ? "bytes"
                                               : NULL;
}

/* In the older format the family of a counter is named as its samples are, with _total. */
static void print_help(const struct exposition *to, const char *name, const char *suffix,
                       const char *type, const char *sentence)
{
    char family[96];
    bool bare = to->open && strcmp(suffix, "_total") == 0;
    snprintf(family, sizeof(family), "weir_%s%s", name, bare ? "" : suffix);
    const char *unit = to->open ? unit_of(span_text(family)) : NULL;
    fprintf(to->out, "# HELP %s %s\n# TYPE %s %s\n", family, sentence, family, type);
    if (unit)
        fprintf(to->out, "# UNIT %s %s\n", family, unit);
}

static void expose_number(const struct exposition *to, const struct stats_counter_about *about,
                          uint64_t value)
{
    FILE *out = to->out;
    bool gauge = about->kind == STATS_KIND_GAUGE;
    const char *suffix = gauge ? "" : "_total";
    print_help(to, about->name, suffix, gauge ? "gauge" : "counter", about->sentence);
    fprintf(out, "weir_%s%s %" PRIu64 "\n", about->name, suffix, value);
}

static void print_by_status(const struct exposition *to, const struct stats_snapshot *s,
                            const char *name, const char *sentence, unsigned first)
{
    FILE *out = to->out;
    print_help(to, name, "_total", "counter", sentence);
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        fprintf(out, "weir_%s_total{status=\"%u\"} %" PRIu64 "\n", name, stats_statuses[i],
                s->counter[first + i]);
}

static void print_by_cause(const struct exposition *to, const struct stats_snapshot *s)
{
    print_help(to, "refused", "_total", "counter", "Requests refused, by cause.");
    for (unsigned i = 0; i < STATS_FAULTS; i++)
        fprintf(to->out, "weir_refused_total{cause=\"%s\"} %" PRIu64 "\n", stats_faults[i].name,
                s->counter[STATS_FAULT_FIRST + i]);
}

static void print_http2_by_cause(const struct exposition *to, const struct stats_snapshot *s)
{
    print_help(to, "http2_ended", "_total", "counter",
               "HTTP/2 connections ended and streams reset, by cause.");
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++)
        fprintf(to->out, "weir_http2_ended_total{cause=\"%s\"} %" PRIu64 "\n",
                stats_http2_faults[i].name, s->counter[STATS_HTTP2_FAULT_FIRST + i]);
}

/* Writes the value of a label in quotes, with backslash, quote and newline escaped. */
static void print_label(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            fputc('\\', out);
        fputc(*text == '\n' ? 'n' : *text, out);
    }
    fputc('"', out);
}

static void print_seconds(FILE *out, uint64_t ns)
{
    fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / DURATION_SECOND, ns % DURATION_SECOND);
}

/* OpenMetrics requires a decimal point: 0.5, 1.0. */
static void print_bound(FILE *out, uint64_t us)
{
    fprintf(out, us % 1000000 == 0 ? "%.1f" : "%g", (double)us / 1e6);
}

/* `site` is NULL for the whole server. */
static void print_counts(FILE *out, const char *name, const char *site,
                         const struct stats_counts *counts)
{
    for (unsigned i = 0; i < sizeof(bounds_us) / sizeof(bounds_us[0]); i++) {
        fprintf(out, "weir_%s_seconds_bucket{", name);
        if (site) {
            fputs("site=", out);
            print_label(out, site);
            fputc(',', out);
        }
        fputs("le=\"", out);
        print_bound(out, bounds_us[i]);
        fprintf(out, "\"} %" PRIu64 "\n", stats_snapshot_at_most(counts, bounds_us[i] * 1000));
    }
    static const char *const rest[] = { "bucket", "sum", "count" };
    for (unsigned i = 0; i < 3; i++) {
        fprintf(out, "weir_%s_seconds_%s", name, rest[i]);
        if (site || i == 0)
            fputc('{', out);
        if (site) {
            fputs("site=", out);
            print_label(out, site);
        }
        if (i == 0)
            fprintf(out, "%sle=\"+Inf\"", site ? "," : "");
        if (site || i == 0)
            fputc('}', out);
        fputc(' ', out);
        if (i == 1)
            print_seconds(out, counts->sum_ns);
        else
            fprintf(out, "%" PRIu64 "\n", counts->count);
    }
}

static void expose_durations(const struct exposition *to, const struct stats_snapshot *s)
{
    FILE *out = to->out;
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++) {
        print_help(to, stats_histograms[i].name, "_seconds", "histogram",
                   stats_histograms[i].sentence);
        print_counts(out, stats_histograms[i].name, NULL, &s->histogram[i]);
    }
    print_help(to, "site_latency", "_seconds", "histogram", "Latency of each site's answers.");
    for (unsigned i = 0; i < s->site_count; i++)
        print_counts(out, "site_latency", s->site[i].name, &s->site[i].latency);
}

static void expose_sites(const struct exposition *to, const struct stats_snapshot *s)
{
    FILE *out = to->out;
    print_help(to, "site_requests", "_total", "counter",
               "Answers of each site, by class of status. An empty site means none.");
    for (unsigned i = 0; i < s->site_count; i++)
        for (unsigned class = 0; class < 5; class ++) {
            fputs("weir_site_requests_total{site=", out);
            print_label(out, s->site[i].name);
            fprintf(out, ",class=\"%uxx\"} %" PRIu64 "\n", class + 1, s->site[i].by_class[class]);
        }
    print_help(to, "site_body_bytes", "_total", "counter", "Bytes of bodies, of each site.");
    for (unsigned i = 0; i < s->site_count; i++) {
        fputs("weir_site_body_bytes_total{site=", out);
        print_label(out, s->site[i].name);
        fprintf(out, "} %" PRIu64 "\n", s->site[i].body_bytes);
    }
}

static void expose_certificates(const struct exposition *to, const struct stats_snapshot *s)
{
    if (s->certificate_count == 0)
        return;
    print_help(to, "certificate_end_seconds", "", "gauge",
               "When each certificate in use ends, since 1970.");
    for (unsigned i = 0; i < s->certificate_count; i++) {
        fputs("weir_certificate_end_seconds{name=", to->out);
        print_label(to->out, s->certificate[i].name);
        fprintf(to->out, ",key=\"%s\"} %" PRId64 "\n", s->certificate[i].key,
                s->certificate[i].ends_s);
    }
}

static void expose_advice(const struct exposition *to, const struct view *view)
{
    static const char *const sizes[VIEW_SIZES] = { "0.5", "1", "2", "4" };
    struct view_advice advice = view_advice_of(view);
    if (!advice.known)
        return;
    print_help(to, "cache_hit_ratio", "", "gauge",
               "Since the start. Sizes are multiples of cache-size; all but 1 are estimated.");
    for (unsigned i = 0; i < VIEW_SIZES; i++)
        fprintf(to->out, "weir_cache_hit_ratio{size=\"%s\"} %.4f\n", sizes[i], advice.hit_ratio[i]);
}

static void expose_usage(const struct exposition *to, const struct view_usage *usage)
{
    FILE *out = to->out;
    print_help(to, "processes", "", "gauge", "Processes of the server, the master included.");
    fprintf(out, "weir_processes %u\n", usage->processes);
    print_help(to, "cpu_seconds", "_total", "counter", "CPU time, with that of ended processes.");
    fputs("weir_cpu_seconds_total{mode=\"user\"} ", out);
    print_seconds(out, usage->user_ns);
    fputs("weir_cpu_seconds_total{mode=\"system\"} ", out);
    print_seconds(out, usage->system_ns);
    print_help(to, "cpus", "", "gauge",
               "CPUs that the server may use, by affinity and the quota of its control groups.");
    fprintf(out, "weir_cpus %u\n", usage->cpus);
    print_help(to, "resident_bytes", "", "gauge",
               "Resident memory of all processes. Shared memory counts in each.");
    fprintf(out, "weir_resident_bytes %" PRIu64 "\n", usage->resident_bytes);
    if (usage->files == 0) /* this process may not read them */
        return;
    print_help(to, "descriptors", "", "gauge", "Open descriptors of all processes.");
    fprintf(out, "weir_descriptors %" PRIu64 "\n", usage->files);
    print_help(to, "descriptors_fullest", "", "gauge",
               "Open descriptors of the process nearest to its limit.");
    fprintf(out, "weir_descriptors_fullest %" PRIu64 "\n", usage->files_most);
    print_help(to, "descriptors_fullest_limit", "", "gauge", "The limit of that process.");
    fprintf(out, "weir_descriptors_fullest_limit %" PRIu64 "\n", usage->files_limit);
}

static void print_all(const struct exposition *to, const struct view *view)
{
    FILE *out = to->out;
    const struct stats_snapshot *s = view->snapshot;
    print_help(to, "up", "", "gauge", "Whether the server runs.");
    fprintf(out, "weir_up %d\n", s->running);
    print_help(to, "started_seconds", "", "gauge", "When counting began, since 1970.");
    fprintf(out, "weir_started_seconds %" PRId64 "\n", s->started_s);
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        expose_number(to, &stats_pairs[i].about, s->pair[i]);
    for (unsigned i = 0; i < STATS_NAMED; i++)
        expose_number(to, &stats_counters[i], s->counter[i]);
    print_by_status(to, s, "answers", "Answers by status.", STATS_STATUS_FIRST);
    print_by_status(to, s, "unreadable", "Answers to requests that could not be read, by status.",
                    STATS_UNREADABLE_FIRST);
    print_by_cause(to, s);
    print_http2_by_cause(to, s);
    expose_certificates(to, s);
    expose_advice(to, view);
    expose_sites(to, s);
    expose_durations(to, s);
    if (s->running)
        expose_usage(to, &view->usage);
}

void view_print_prometheus(const struct view *view, FILE *out)
{
    const struct exposition to = { out, false };
    print_all(&to, view);
}

void view_print_openmetrics(const struct view *view, FILE *out)
{
    const struct exposition to = { out, true };
    print_all(&to, view);
    fputs("# EOF\n", out);
}
