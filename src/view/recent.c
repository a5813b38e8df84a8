/* SPDX-License-Identifier: MIT */
#include "view/recent.h"

#include "base/duration.h"
#include "base/escape.h"

#include <stdio.h>

static const char *reason_of(unsigned status)
{
    switch (status) {
#define STATUS(code, name, reason, sentence) \
    case code: \
        return reason;
#include "http/status.def"
#undef STATUS
    default:
        return "";
    }
}

/* A cause that the status alone does not name, and where it can be found. */
static const char *hint_of(unsigned status)
{
    return status == 403   ? ": `weir trace` with this path says why"
           : status == 500 ? ": the error log says why"
           : status == 503 ? ": a rule says so, or the server was busy, as a verdict says then"
                           : "";
}

/* An answer that waited for the disk for half of its time or longer is slow for that reason. */
static bool is_by_disk(const struct stats_answer *answer, enum stats_recent_kind kind)
{
    return (kind == STATS_RECENT_SLOW || kind == STATS_RECENT_5XX) && answer->waited_ns > 0 &&
           answer->waited_ns >= answer->duration_ns / 2;
}

static void say_cause(struct view_answer *out)
{
    const struct stats_answer *answer = out->answer;
    const char *cause = reason_of(answer->status), *hint = "";
    if (answer->fault > 0)
        cause = stats_faults[answer->fault - 1].sentence;
    else if (out->kind == STATS_RECENT_CUT)
        cause = "the connection ended before the answer did";
    else if (out->kind == STATS_RECENT_SLOW)
        cause = "the answer took `stats-slow` or longer";
    else
        hint = hint_of(answer->status);
    if (answer->fault == 0 && is_by_disk(answer, out->kind))
        (void)snprintf(out->cause, sizeof(out->cause), "the answer waited %s for the disk",
                       duration_format(answer->waited_ns).text);
    else
        (void)snprintf(out->cause, sizeof(out->cause), "%s%s", cause, hint);
}

static struct view_answer answer_of(const struct view *view, enum stats_recent_kind kind,
                                    unsigned index)
{
    const struct stats_snapshot *s = view->snapshot;
    const struct stats_answer *answer = &s->recent[kind][index];
    struct view_answer out = {
        .answer = answer,
        .kind = kind,
        .age_ns = view->read_ns > answer->at_ns ? view->read_ns - answer->at_ns : 0,
        .site = answer->site < s->site_count ? s->site[answer->site].name : "",
    };
    say_cause(&out);
    return out;
}

/* Each kind has its newest first. The newest of all that are left follows. */
size_t view_recent(const struct view *view, struct view_answer out[VIEW_RECENT_MAX])
{
    const struct stats_snapshot *s = view->snapshot;
    unsigned next[STATS_RECENT_KINDS] = { 0 };
    size_t count = 0;
    for (;;) {
        unsigned newest = STATS_RECENT_KINDS;
        for (unsigned kind = 0; kind < STATS_RECENT_KINDS; kind++)
            if (next[kind] < s->recent_count[kind] &&
                (newest == STATS_RECENT_KINDS ||
                 s->recent[kind][next[kind]].at_ns > s->recent[newest][next[newest]].at_ns))
                newest = kind;
        if (newest == STATS_RECENT_KINDS)
            return count;
        out[count++] = answer_of(view, (enum stats_recent_kind)newest, next[newest]);
        next[newest]++;
    }
}

const char *view_recent_kind_name(enum stats_recent_kind kind)
{
    static const char *const names[STATS_RECENT_KINDS] = {
        [STATS_RECENT_5XX] = "5xx",
        [STATS_RECENT_4XX] = "4xx",
        [STATS_RECENT_CUT] = "cut",
        [STATS_RECENT_SLOW] = "slow",
    };
    return names[kind];
}

void view_recent_title(const struct view *view, char out[VIEW_RECENT_TITLE])
{
    const uint64_t slow_ns = view_serving(view)->slow_ns;
    if (slow_ns > 0)
        snprintf(out, VIEW_RECENT_TITLE, "answers that failed, took %s or longer, or were cut",
                 duration_format(slow_ns).text);
    else
        snprintf(out, VIEW_RECENT_TITLE, "answers that failed or were cut");
}

void view_recent_say(const struct view_answer *answer, char out[VIEW_RECENT_TEXT])
{
    struct span text = span_of(answer->answer->text, answer->answer->text_len);
    if (text.len == 0)
        text = SPAN("-");
    out[escape_text(out, VIEW_RECENT_TEXT - 1, text, ESCAPE_TEXT)] = '\0';
}
