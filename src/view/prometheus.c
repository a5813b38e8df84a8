/* SPDX-License-Identifier: MIT
 *
 * `weir stats --prometheus`: the text format 0.0.4. Names are those of
 * counters.def, with weir_ before and, for counters, _total behind.
 */
#include "view/view.h"

#include <inttypes.h>

/* Microseconds; each bucket holds what the one before does. */
static const uint64_t bounds_us[] = {
    10,    25,    50,     100,    250,    500,     1000,    2500,    5000,     10000,
    25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000,
};

static void print_help(FILE *out, const char *name, const char *suffix, const char *type,
                       const char *sentence)
{
    fprintf(out, "# HELP weir_%s%s %s\n# TYPE weir_%s%s %s\n", name, suffix, sentence, name, suffix,
            type);
}

static void print_number(FILE *out, const struct stats_counter_about *about, uint64_t value)
{
    bool gauge = about->kind == STATS_KIND_GAUGE;
    const char *suffix = gauge ? "" : "_total";
    print_help(out, about->name, suffix, gauge ? "gauge" : "counter", about->sentence);
    fprintf(out, "weir_%s%s %" PRIu64 "\n", about->name, suffix, value);
}

static void print_by_status(FILE *out, const struct stats_snapshot *s, const char *name,
                            const char *sentence, unsigned first)
{
    print_help(out, name, "_total", "counter", sentence);
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        fprintf(out, "weir_%s_total{status=\"%u\"} %" PRIu64 "\n", name, stats_statuses[i],
                s->counter[first + i]);
}

/* A label's value, with its quotes (backslash, quote and newline are escaped). */
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
    fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static void print_bound(FILE *out, uint64_t us)
{
    fprintf(out, "%g", (double)us / 1e6);
}

/* `site`: NULL for the whole. */
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
        fprintf(out, "\"} %" PRIu64 "\n", stats_counts_at_most(counts, bounds_us[i] * 1000));
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

static void print_durations(FILE *out, const struct stats_snapshot *s)
{
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++) {
        print_help(out, stats_histograms[i].name, "_seconds", "histogram",
                   stats_histograms[i].sentence);
        print_counts(out, stats_histograms[i].name, NULL, &s->histogram[i]);
    }
    print_help(out, "site_latency", "_seconds", "histogram", "Latency of each site's answers.");
    for (unsigned i = 0; i < s->site_count; i++)
        print_counts(out, "site_latency", s->site[i].name, &s->site[i].latency);
}

static void print_sites(FILE *out, const struct stats_snapshot *s)
{
    print_help(out, "site_requests", "_total", "counter",
               "Answers of each site, by class of status; of none, where the site is \"\".");
    for (unsigned i = 0; i < s->site_count; i++)
        for (unsigned class = 0; class < 5; class ++) {
            fputs("weir_site_requests_total{site=", out);
            print_label(out, s->site[i].name);
            fprintf(out, ",class=\"%uxx\"} %" PRIu64 "\n", class + 1, s->site[i].by_class[class]);
        }
    print_help(out, "site_body_bytes", "_total", "counter", "Bytes of bodies, of each site.");
    for (unsigned i = 0; i < s->site_count; i++) {
        fputs("weir_site_body_bytes_total{site=", out);
        print_label(out, s->site[i].name);
        fprintf(out, "} %" PRIu64 "\n", s->site[i].body_bytes);
    }
}

static void print_usage(FILE *out, const struct view_usage *usage)
{
    print_help(out, "processes", "", "gauge", "Processes of the server, the master included.");
    fprintf(out, "weir_processes %u\n", usage->processes);
    print_help(out, "cpu_seconds", "_total", "counter", "CPU time, with that of ended processes.");
    fputs("weir_cpu_seconds_total{mode=\"user\"} ", out);
    print_seconds(out, usage->user_ns);
    fputs("weir_cpu_seconds_total{mode=\"system\"} ", out);
    print_seconds(out, usage->system_ns);
    print_help(out, "resident_bytes", "", "gauge",
               "Resident memory of all processes; what they share counts in each.");
    fprintf(out, "weir_resident_bytes %" PRIu64 "\n", usage->resident_bytes);
    print_help(out, "descriptors", "", "gauge", "Open descriptors of all processes.");
    fprintf(out, "weir_descriptors %" PRIu64 "\n", usage->files);
    print_help(out, "descriptors_fullest", "", "gauge",
               "Open descriptors of the process that is nearest to its limit.");
    fprintf(out, "weir_descriptors_fullest %" PRIu64 "\n", usage->files_most);
    print_help(out, "descriptors_fullest_limit", "", "gauge", "The limit of that process.");
    fprintf(out, "weir_descriptors_fullest_limit %" PRIu64 "\n", usage->files_limit);
}

void view_print_prometheus(const struct view *view, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    print_help(out, "up", "", "gauge", "Whether the server runs.");
    fprintf(out, "weir_up %d\n", s->running);
    print_help(out, "started_seconds", "", "gauge", "When counting began, since 1970.");
    fprintf(out, "weir_started_seconds %" PRId64 "\n", s->started_s);
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        print_number(out, &stats_pairs[i].about, s->pair[i]);
    for (unsigned i = 0; i < STATS_NAMED; i++)
        print_number(out, &stats_counters[i], s->counter[i]);
    print_by_status(out, s, "answers", "Answers by status.", STATS_STATUS_FIRST);
    print_by_status(out, s, "unreadable", "What could not be read as a request, by status.",
                    STATS_UNREADABLE_FIRST);
    print_sites(out, s);
    print_durations(out, s);
    if (s->running)
        print_usage(out, &view->usage);
}
