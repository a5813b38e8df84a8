/* SPDX-License-Identifier: MIT
 *
 * `weir stats --diff`: what has changed between two views of a server, and how fast. Numbers that
 * have not changed are left out. A counter never falls, except between two servers.
 */
#include "view/table.h"
#include "view/view.h"

#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>

struct difference {
    struct view_table table;
    const struct stats_snapshot *now, *earlier;
    double seconds;
    bool any; /* something has changed */
};

static uint64_t rise_of(uint64_t now, uint64_t earlier)
{
    return now > earlier ? now - earlier : 0;
}

static void print_rate(const struct difference *d, uint64_t rise, const char *unit)
{
    double rate = d->seconds > 0 ? (double)rise / d->seconds : 0;
    if (strcmp(unit, "bytes") == 0)
        fprintf(d->table.out, "%14s/s", size_format((uint64_t)(rate + 0.5)).text);
    else
        fprintf(d->table.out, "%14.*f/s", rate < 100 ? 2 : 0, rate);
}

/* `title` is printed before the first row of its section, and is then NULL. */
static void print_title(struct difference *d, const char **title)
{
    if (*title)
        fprintf(d->table.out, "\n%s\n", *title);
    *title = NULL;
    d->any = true;
}

static void print_rise(struct difference *d, const char **title, const char *name, uint64_t rise,
                       const char *unit)
{
    if (rise == 0)
        return;
    print_title(d, title);
    view_table_name(&d->table, name);
    view_table_amount(&d->table, rise, unit);
    print_rate(d, rise, unit);
    fputc('\n', d->table.out);
}

static void print_gauge(struct difference *d, const char **title, const char *name, uint64_t now,
                        uint64_t earlier, const char *unit)
{
    if (now == earlier)
        return;
    print_title(d, title);
    view_table_name(&d->table, name);
    view_table_amount(&d->table, now, unit);
    fprintf(d->table.out, ", before");
    view_table_amount(&(struct view_table){ .out = d->table.out }, earlier, unit);
    fputc('\n', d->table.out);
}

static void print_changes(struct difference *d, unsigned section)
{
    const char *title = stats_sections[section];
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        if (stats_pairs[i].about.section == section)
            print_gauge(d, &title, stats_pairs[i].about.name, d->now->pair[i], d->earlier->pair[i],
                        stats_pairs[i].about.unit);
    for (unsigned i = 0; i < STATS_NAMED; i++) {
        const struct stats_counter_about *about = &stats_counters[i];
        if (about->section != section)
            continue;
        if (about->kind == STATS_KIND_GAUGE)
            print_gauge(d, &title, about->name, d->now->counter[i], d->earlier->counter[i],
                        about->unit);
        else
            print_rise(d, &title, about->name, rise_of(d->now->counter[i], d->earlier->counter[i]),
                       about->unit);
    }
}

static void print_counter_rise(struct difference *d, const char **title, const char *name,
                               unsigned counter, const char *unit)
{
    print_rise(d, title, name, rise_of(d->now->counter[counter], d->earlier->counter[counter]),
               unit);
}

static void print_statuses(struct difference *d, const char *title, unsigned first)
{
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        char code[8];
        snprintf(code, sizeof(code), "%u", stats_statuses[i]);
        print_counter_rise(d, &title, code, first + i, "answers");
    }
}

static void print_answers(struct difference *d)
{
    const char *title = "Requests refused, by cause";
    print_statuses(d, "Answers by status", STATS_STATUS_FIRST);
    print_statuses(d, "Of these, to requests that could not be read", STATS_UNREADABLE_FIRST);
    for (unsigned i = 0; i < STATS_FAULTS; i++)
        print_counter_rise(d, &title, stats_faults[i].name, STATS_FAULT_FIRST + i, "requests");
}

static void print_http2_causes(struct difference *d)
{
    const char *title = "HTTP/2 connections ended and streams reset, by cause";
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++)
        print_counter_rise(d, &title, stats_http2_faults[i].name, STATS_HTTP2_FAULT_FIRST + i,
                           "times");
}

static void subtract_counts(const struct stats_counts *now, const struct stats_counts *earlier,
                            struct stats_counts *rise)
{
    rise->count = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        rise->bucket[i] = rise_of(now->bucket[i], earlier->bucket[i]);
        rise->count += rise->bucket[i];
    }
    rise->sum_ns = rise_of(now->sum_ns, earlier->sum_ns);
}

static void print_durations(struct difference *d)
{
    struct stats_counts *rise = malloc(sizeof(*rise));
    bool begun = false;
    for (unsigned i = 0; rise && i < STATS_HISTOGRAMS; i++) {
        subtract_counts(&d->now->histogram[i], &d->earlier->histogram[i], rise);
        if (rise->count == 0)
            continue;
        if (!begun) {
            fputc('\n', d->table.out);
            view_table_quantiles_head(&d->table, "Latency");
        }
        begun = d->any = true;
        view_table_name(&d->table, stats_histograms[i].name);
        view_table_quantiles(&d->table, rise);
        fputc('\n', d->table.out);
    }
    free(rise);
}

static void print_sites(struct difference *d)
{
    const char *title = "Sites";
    for (unsigned i = 0; i < d->now->site_count; i++) {
        const struct stats_site *site = &d->now->site[i];
        uint64_t earlier = i < d->earlier->site_count ? d->earlier->site[i].requests : 0;
        char name[STATS_SITE_NAME_MAX * 4] = "(none)";
        if (i > 0)
            name[escape_text(name, sizeof(name) - 1, span_text(site->name), ESCAPE_TEXT)] = '\0';
        print_rise(d, &title, name, rise_of(site->requests, earlier), "requests");
    }
}

void view_print_difference(const struct view *view, const struct view *earlier, FILE *out)
{
    uint64_t elapsed_ns = rise_of(view->read_ns, earlier->read_ns);
    struct difference d = {
        .table = { .out = out },
        .now = view->snapshot,
        .earlier = earlier->snapshot,
        .seconds = (double)elapsed_ns / (double)DURATION_SECOND,
    };
    fprintf(out, "weir %s, process %d, changes in %s\n", d.now->weir, (int)d.now->master,
            duration_format(elapsed_ns).text);
    for (unsigned i = 0; i < STATS_SECTION_Latency; i++) {
        print_changes(&d, i);
        if (i == STATS_SECTION_Requests)
            print_answers(&d);
        if (i == STATS_SECTION_HTTP2)
            print_http2_causes(&d);
    }
    print_durations(&d);
    print_sites(&d);
    if (!d.any)
        fputs("\nnothing has changed\n", out);
}
