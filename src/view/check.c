/* SPDX-License-Identifier: MIT */
#include "view/check.h"

#include "base/duration.h"
#include "base/escape.h"
#include "view/verdict.h"

#include <inttypes.h>

/* A sentence is one line, and has no `|`: that begins the numbers. */
static void print_sentence(const char *sentence, FILE *out)
{
    char text[VIEW_VERDICT_TEXT * 4];
    size_t len = escape_text(text, sizeof(text), span_text(sentence), ESCAPE_TEXT);
    for (size_t i = 0; i < len; i++)
        fputc(text[i] == '|' ? '/' : text[i], out);
}

static void print_state(enum view_check_state state, FILE *out)
{
    static const char *const names[] = {
        [VIEW_CHECK_OK] = "OK",
        [VIEW_CHECK_WARNING] = "WARNING",
        [VIEW_CHECK_CRITICAL] = "CRITICAL",
        [VIEW_CHECK_UNKNOWN] = "UNKNOWN",
    };
    fprintf(out, "WEIR %s - ", names[state]);
}

void view_check_print_problem(enum view_check_state state, const char *sentence, FILE *out)
{
    print_state(state, out);
    print_sentence(sentence, out);
    fputc('\n', out);
}

static uint64_t answers_of_class(const struct stats_snapshot *s, unsigned place)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->site_count; i++)
        sum += s->site[i].by_class[place];
    return sum;
}

/* Requests per second in the last minute. */
static double recent_rate(const struct stats_snapshot *s)
{
    if (s->moment_count < 2)
        return 0;
    const struct stats_moment *first = &s->moment[0], *last = &s->moment[s->moment_count - 1];
    double requests = (double)last->counter[STATS_requests] -
                      (double)first->counter[STATS_requests];
    return requests * (double)DURATION_SECOND / (double)(last->at_ns - first->at_ns);
}

static void print_count(const char *name, uint64_t count, FILE *out)
{
    fprintf(out, " %s=%" PRIu64 "c;;;0", name, count);
}

/* NAME=VALUE[UNIT];WARNING;CRITICAL;LEAST;MOST. `c` marks a counter. */
static void print_numbers(const struct view *view, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    fputs(" |", out);
    print_count("requests", s->counter[STATS_requests], out);
    print_count("answers_4xx", answers_of_class(s, 3), out);
    print_count("answers_5xx", answers_of_class(s, 4), out);
    print_count("answers_cut", s->counter[STATS_answers_cut], out);
    print_count("sent_bytes", s->counter[STATS_sent_bytes], out);
    print_count("worker_deaths", s->counter[STATS_worker_deaths], out);
    fprintf(out, " connections_open=%" PRIu64 ";;;0 connections_active=%" PRIu64 ";;;0",
            s->pair[STATS_PAIR_connections_open], s->pair[STATS_PAIR_connections_active]);
    if (s->running)
        fprintf(out, " resident=%" PRIu64 "B;;;0 descriptors=%" PRIu64 ";;;0;%" PRIu64,
                view->usage.resident_bytes, view->usage.files_most, view->usage.files_limit);
    if (s->certificate_count > 0)
        fprintf(out, " certificate_days=%.1f;14:;0:", view_days_left(view, &s->certificate[0]));
}

/* What a server does that has no fault. */
static void print_activity(const struct view *view, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    fprintf(out, "%s", view_state(view));
    for (struct span rest = span_text(view_serving(view)->urls), url; view_next_url(&rest, &url);) {
        char text[STATS_URLS_MAX];
        (void)snprintf(text, sizeof(text), " %.*s", (int)url.len, url.at);
        print_sentence(text, out);
    }
    fprintf(out, ", %.2f requests/s, %" PRIu64 " connections open", recent_rate(s),
            s->pair[STATS_PAIR_connections_open]);
}

/* The verdicts, the gravest first, that are more than notes. */
static size_t find_faults(const struct view *view, struct view_verdict found[VIEW_VERDICTS_MAX])
{
    size_t count = view_verdicts(view, view->before, found), faults = 0;
    while (faults < count && found[faults].gravity > VIEW_NOTE)
        faults++;
    return faults;
}

enum view_check_state view_check_print(const struct view *view, FILE *out)
{
    struct view_verdict found[VIEW_VERDICTS_MAX];
    size_t faults = find_faults(view, found);
    bool wrong = faults > 0 && found[0].gravity == VIEW_WRONG;
    bool serving = view->snapshot->state == STATS_SERVING;
    enum view_check_state state = faults > 0 ? VIEW_CHECK_WARNING : VIEW_CHECK_OK;
    if (wrong || !serving)
        state = VIEW_CHECK_CRITICAL;
    print_state(state, out);
    if (!wrong && (faults == 0 || !serving))
        print_activity(view, out);
    else
        print_sentence(found[0].text, out);
    if (faults > 1)
        fprintf(out, ". `weir stats` shows %zu more", faults - 1);
    print_numbers(view, out);
    fputc('\n', out);
    return state;
}
