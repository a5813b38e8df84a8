/* SPDX-License-Identifier: MIT
 *
 * `weir stats` for people: sections of numbers, and with --explain the meaning of each.
 */
#include "view/view.h"

#include "base/calendar.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "view/advice.h"
#include "view/recent.h"
#include "view/table.h"
#include "view/verdict.h"

#include <inttypes.h>

/* The estimates that the row `cache-size` says in words. */
static const char *estimate_name(enum stats_counter counter)
{
    return counter == STATS_cache_misses_half        ? "estimate, half the size"
           : counter == STATS_cache_misses_same      ? "estimate, this size"
           : counter == STATS_cache_misses_double    ? "estimate, twice the size"
           : counter == STATS_cache_misses_quadruple ? "estimate, 4 x the size"
                                                     : NULL;
}

static void print_number(const struct view_table *p, const struct stats_counter_about *about,
                         uint64_t value)
{
    view_table_name(p, about->name);
    view_table_amount(p, value, about->unit);
    view_table_sentence(p, about->sentence);
}

static void print_counter(const struct view_table *p, enum stats_counter counter, uint64_t value)
{
    const char *estimate = estimate_name(counter);
    if (estimate && !p->explain)
        return;
    if (!estimate) {
        print_number(p, &stats_counters[counter], value);
        return;
    }
    view_table_name(p, estimate);
    view_table_amount(p, value, "misses");
    view_table_sentence(p, stats_counters[counter].sentence);
}

static void print_section(const struct view_table *p, const struct stats_snapshot *s,
                          enum stats_section section)
{
    fprintf(p->out, "\n%s\n", stats_sections[section]);
    for (unsigned i = 0; i < STATS_PAIRS; i++)
        if (stats_pairs[i].about.section == section)
            print_number(p, &stats_pairs[i].about, s->pair[i]);
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].section == section)
            print_counter(p, (enum stats_counter)i, s->counter[i]);
}

static void print_statuses(const struct view_table *p, const struct stats_snapshot *s)
{
    fprintf(p->out, "\nAnswers by status\n");
    for (unsigned i = 0; i < STATS_STATUSES; i++)
        if (s->counter[STATS_STATUS_FIRST + i] > 0)
            fprintf(p->out, "  %-*u %*" PRIu64 "\n", VIEW_TABLE_NAME, stats_statuses[i],
                    VIEW_TABLE_NUMBER, s->counter[STATS_STATUS_FIRST + i]);
    bool any = false;
    for (unsigned i = 0; i < STATS_STATUSES; i++) {
        uint64_t count = s->counter[STATS_UNREADABLE_FIRST + i];
        if (count > 0 && !any)
            fprintf(p->out, "  of these, to requests that could not be read:\n");
        any = any || count > 0;
        if (count > 0)
            fprintf(p->out, "    %-*u %*" PRIu64 "\n", VIEW_TABLE_NAME - 2, stats_statuses[i],
                    VIEW_TABLE_NUMBER, count);
    }
}

static void print_faults(const struct view_table *p, const struct stats_snapshot *s)
{
    bool any = false;
    for (unsigned i = 0; i < STATS_FAULTS; i++) {
        uint64_t count = s->counter[STATS_FAULT_FIRST + i];
        if (count == 0)
            continue;
        if (!any)
            fprintf(p->out, "\nRequests refused, by cause\n");
        any = true;
        view_table_name(p, stats_faults[i].name);
        fprintf(p->out, "%*" PRIu64, VIEW_TABLE_NUMBER, count);
        view_table_sentence(p, stats_faults[i].sentence);
    }
}

static void print_http2_faults(const struct view_table *p, const struct stats_snapshot *s)
{
    bool any = false;
    for (unsigned i = 0; i < STATS_HTTP2_FAULTS; i++) {
        uint64_t count = s->counter[STATS_HTTP2_FAULT_FIRST + i];
        if (count == 0)
            continue;
        if (!any)
            fprintf(p->out, "\nHTTP/2 connections ended and streams reset, by cause\n");
        any = true;
        view_table_name(p, stats_http2_faults[i].name);
        fprintf(p->out, "%*" PRIu64, VIEW_TABLE_NUMBER, count);
        view_table_sentence(p, stats_http2_faults[i].sentence);
    }
}

static void print_latency(const struct view_table *p, const struct stats_snapshot *s)
{
    fputc('\n', p->out);
    view_table_quantiles_head(p, "Latency");
    for (unsigned i = 0; i < STATS_HISTOGRAMS; i++) {
        if (s->histogram[i].count == 0 && !p->explain)
            continue;
        view_table_name(p, stats_histograms[i].name);
        view_table_quantiles(p, &s->histogram[i]);
        view_table_sentence(p, stats_histograms[i].sentence);
    }
}

static void print_sites(const struct view_table *p, const struct stats_snapshot *s)
{
    fprintf(p->out, "\n%-*s %*s %10s %10s %10s %10s %10s\n", VIEW_TABLE_NAME + 2, "Sites",
            VIEW_TABLE_NUMBER, "requests", "2xx", "3xx", "4xx", "5xx", "bodies");
    for (unsigned i = 0; i < s->site_count; i++) {
        const struct stats_site *site = &s->site[i];
        char name[STATS_SITE_NAME_MAX * 4] = "(none)";
        if (i > 0)
            name[escape_text(name, sizeof(name) - 1, span_text(site->name), ESCAPE_TEXT)] = '\0';
        if (i == 0 && site->requests == 0)
            continue;
        fprintf(p->out,
                "  %-*s %*" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                " %10s\n",
                VIEW_TABLE_NAME, name, VIEW_TABLE_NUMBER, site->requests, site->by_class[1],
                site->by_class[2], site->by_class[3], site->by_class[4],
                size_format(site->body_bytes).text);
    }
}

static void print_time(const struct view_table *p, const char *name, int64_t time_s)
{
    char text[CALENDAR_LEN];
    calendar_format(text, time_s);
    view_table_name(p, name);
    fprintf(p->out, " %.10s %.8s UTC\n", text, text + 11);
}

static void print_usage(const struct view_table *p, const struct view_usage *usage)
{
    view_table_name(p, "processes");
    fprintf(p->out, " %*u\n", VIEW_TABLE_NUMBER, usage->processes);
    view_table_name(p, "CPU time");
    fprintf(p->out, " %*.2f seconds user, %.2f seconds system\n", VIEW_TABLE_NUMBER,
            (double)usage->user_ns / 1e9, (double)usage->system_ns / 1e9);
    view_table_name(p, "resident memory");
    view_table_amount(p, usage->resident_bytes, "bytes");
    fputc('\n', p->out);
    view_table_name(p, "open descriptors");
    fprintf(p->out, " %*" PRIu64 ", at most %" PRIu64 " of %" PRIu64 " in one process\n",
            VIEW_TABLE_NUMBER, usage->files, usage->files_most, usage->files_limit);
}

static void print_urls(const struct view_table *p, const char *name, const char *urls)
{
    for (struct span rest = span_text(urls), url; view_next_url(&rest, &url); name = "") {
        char text[STATS_URLS_MAX * 4];
        text[escape_text(text, sizeof(text) - 1, url, ESCAPE_TEXT)] = '\0';
        view_table_name(p, name);
        fprintf(p->out, " %s\n", text);
    }
}

static void print_instance(const struct view_table *p, const struct view *view)
{
    const struct stats_snapshot *s = view->snapshot;
    const struct stats_generation *g = view_serving(view);
    fprintf(p->out, "weir %s, process %d, %s\n", s->weir, (int)s->master,
            s->running ? view_state(view) : "dead: these are its last numbers");
    if (s->generation > 0) {
        print_urls(p, "serves", g->urls);
        print_urls(p, "statistics page", g->page_urls);
    }
    print_time(p, "counting since", s->started_s);
    if (s->generation > 0) {
        view_table_name(p, "configuration");
        fprintf(p->out, " number %" PRIu64 " (%016" PRIx64 "), model %s, %u worker%s\n",
                s->generation, g->configuration, g->model, g->workers, g->workers == 1 ? "" : "s");
        view_table_name(p, "sandbox");
        fprintf(p->out, " %s\n", g->sandbox);
        print_time(p, "in force since", g->started_s);
    }
    if (s->reloaded_s > 0)
        print_time(p, s->reload_failed ? "last reload, failed" : "last reload", s->reloaded_s);
}

static void print_certificates(const struct view_table *p, const struct view *view)
{
    for (unsigned i = 0; i < view->snapshot->certificate_count; i++) {
        const struct stats_certificate *one = &view->snapshot->certificate[i];
        char name[sizeof(one->name) * 4], end[CALENDAR_LEN];
        name[escape_text(name, sizeof(name) - 1, span_text(one->name), ESCAPE_TEXT)] = '\0';
        calendar_format(end, one->ends_s);
        double days = view_days_left(view, one);
        view_table_name(p, "certificate");
        fprintf(p->out, " %.10s, %s%.1f days%s: %s (%s)", end, days < 0 ? "" : "in ",
                days < 0 ? -days : days, days < 0 ? " ago" : "", name, one->key);
        view_table_sentence(p,
                            "When this certificate ends, its first name, and the kind of its key.");
    }
}

/* A server without TLS has nothing to show there. */
static bool is_unused(const struct view_table *p, const struct stats_snapshot *s,
                      enum stats_section section)
{
    if (section != STATS_SECTION_TLS || p->explain || s->certificate_count > 0)
        return false;
    for (unsigned i = 0; i < STATS_NAMED; i++)
        if (stats_counters[i].section == section && s->counter[i] > 0)
            return false;
    return true;
}

static void print_advice(const struct view_table *p, const struct view *view)
{
    char text[VIEW_ADVICE_MAX];
    view_advice_say(view, text);
    view_table_name(p, "another cache-size");
    fprintf(p->out, " %s", text);
    view_table_sentence(p,
                        "The share of lookups that find their file in the cache. The ratio now is "
                        "counted, the others are estimated from a sample of the files.");
}

static void print_part(const struct view_table *p, const char *label, const char *text)
{
    char escaped[STATS_TEXT_MAX * 4];
    escaped[escape_text(escaped, sizeof(escaped) - 1, span_text(text), ESCAPE_TEXT)] = '\0';
    if (escaped[0])
        fprintf(p->out, "%s%s\n", label, escaped);
}

static void print_verdicts(const struct view_table *p, const struct view *view)
{
    struct view_verdict found[VIEW_VERDICTS_MAX];
    size_t count = view_verdicts(view, view->before, found);
    fprintf(p->out, "\nVerdict\n");
    if (count == 0)
        fprintf(p->out, "  nothing is wrong\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(p->out, "  %s: ", view_verdict_gravity_name(found[i].gravity));
        print_part(p, "", found[i].text);
        print_part(p, "      why:  ", found[i].why);
        print_part(p, "      cure: ", found[i].cure);
    }
}

static void print_age(FILE *out, uint64_t age_ns)
{
    uint64_t age_s = age_ns / DURATION_SECOND;
    if (age_s < 120)
        fprintf(out, "  %4" PRIu64 " s ago", age_s);
    else if (age_s < 7200)
        fprintf(out, "%4" PRIu64 " min ago", age_s / 60);
    else
        fprintf(out, "  %4" PRIu64 " h ago", age_s / 3600);
}

/* They show without a log which requests fail now. JSON and the page have more of them. */
static void print_recent(const struct view_table *p, const struct view *view)
{
    enum { SHOWN_MAX = 12 };
    struct view_answer found[VIEW_RECENT_MAX];
    size_t count = view_recent(view, found);
    char title[VIEW_RECENT_TITLE];
    view_recent_title(view, title);
    if (count > 0)
        fprintf(p->out, "\nRecent %s\n", title);
    for (size_t i = 0; i < count && (i < SHOWN_MAX || p->explain); i++) {
        char text[VIEW_RECENT_TEXT];
        view_recent_say(&found[i], text);
        print_age(p->out, found[i].age_ns);
        fprintf(p->out, "  %-4s %3u %8s  %016" PRIx64 "  %s", view_recent_kind_name(found[i].kind),
                found[i].answer->status, duration_format(found[i].answer->duration_ns).text,
                found[i].answer->id, text);
        view_table_sentence(p, found[i].cause);
    }
}

void view_print_text(const struct view *view, bool explain, FILE *out)
{
    const struct view_table p = { out, explain };
    const struct stats_snapshot *s = view->snapshot;
    print_instance(&p, view);
    print_verdicts(&p, view);
    for (unsigned i = 0; i < STATS_SECTION_Latency; i++) {
        if (is_unused(&p, s, (enum stats_section)i))
            continue;
        print_section(&p, s, (enum stats_section)i);
        if (i == STATS_SECTION_TLS)
            print_certificates(&p, view);
        if (i == STATS_SECTION_Server && s->running)
            print_usage(&p, &view->usage);
        if (i == STATS_SECTION_Cache)
            print_advice(&p, view);
        if (i == STATS_SECTION_Requests) {
            print_statuses(&p, s);
            print_faults(&p, s);
        }
        if (i == STATS_SECTION_HTTP2)
            print_http2_faults(&p, s);
    }
    print_latency(&p, s);
    print_sites(&p, s);
    print_recent(&p, view);
}
