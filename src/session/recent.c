/* SPDX-License-Identifier: MIT */
#include "session/recent.h"

#include "session/line.h"
#include "session/pending.h"

#include <string.h>

static enum stats_recent_kind kind_of(unsigned status, bool cut)
{
    return status >= 500   ? STATS_RECENT_5XX
           : status >= 400 ? STATS_RECENT_4XX
           : cut           ? STATS_RECENT_CUT
                           : STATS_RECENT_SLOW;
}

/* Method and target, without the query, which may have secrets, and without the version. */
static struct span text_of(struct span request_line)
{
    const char *space = memchr(request_line.at, ' ', request_line.len);
    const size_t from = space ? (size_t)(space - request_line.at) + 1 : 0;
    struct span rest = span_skip(request_line, from);
    struct span target = span_take(&rest, ' ');
    return span_first(request_line, from + span_take(&target, '?').len);
}

static void set_text(struct stats_answer *answer, struct span text)
{
    text = span_first(text, STATS_ANSWER_TEXT_MAX);
    answer->text_len = (uint16_t)text.len;
    memcpy(answer->text, text.at, text.len);
}

/* The fault that was counted last in this thread, if it leads to this status. */
static uint16_t take_fault(struct session_thread *thread, unsigned status)
{
    enum http_fault fault = thread->fault;
    thread->fault = HTTP_FAULT_NONE;
    return fault != HTTP_FAULT_NONE && (unsigned)http_fault_status(fault) == status
               ? (uint16_t)fault
               : 0;
}

void session_recent_add_staged(const struct session_exchange *x, unsigned status,
                               uint64_t body_bytes)
{
    struct session_thread *thread = x->thread;
    struct session_buffer *out = x->session->output;
    uint64_t now_ns = thread->now_ns;
    struct stats_answer answer = {
        .id = x->id,
        .at_ns = now_ns,
        .duration_ns = now_ns > x->began_ns ? now_ns - x->began_ns : 0,
        .body_bytes = body_bytes,
        .waited_ns = session_pending_waited_ns(x),
        .status = (uint16_t)status,
        .site = (uint16_t)session_answer_site(x),
        .fault = take_fault(thread, status),
    };
    if (x->request_line.len > 0)
        set_text(&answer, text_of(x->request_line));
    struct stats_recent_note note =
        stats_recent_add(&thread->stats, kind_of(status, false), &answer);
    if (note.place && out->noted_count < SESSION_GROUPS_MAX)
        out->noted[out->noted_count++] = (struct session_noted){ note, x->began_ns };
}

/* A line of the log has the text, too. */
void session_recent_open(const struct session_exchange *x, struct session_answer *answer)
{
    answer->id = x->id;
    answer->began_ns = x->began_ns;
    answer->waited_ns = session_pending_waited_ns(x);
    answer->cut = false;
    answer->text_len = 0;
    if (answer->line || x->request_line.len == 0)
        return;
    struct span text = span_first(text_of(x->request_line), sizeof(answer->text));
    answer->text_len = (uint8_t)text.len;
    memcpy(answer->text, text.at, text.len);
}

static void add_ended(struct session_thread *thread, const struct session_answer *answer)
{
    uint64_t now_ns = thread->now_ns;
    struct stats_answer ended = {
        .id = answer->id,
        .at_ns = now_ns,
        .duration_ns = now_ns > answer->began_ns ? now_ns - answer->began_ns : 0,
        .body_bytes = answer->body_sent,
        .waited_ns = answer->waited_ns,
        .status = (uint16_t)answer->status,
        .site = (uint16_t)answer->site,
        .fault = take_fault(thread, answer->status),
    };
    if (answer->line)
        set_text(&ended, text_of(answer->line->line.request_line));
    else
        set_text(&ended, span_of(answer->text, answer->text_len));
    (void)stats_recent_add(&thread->stats, kind_of(answer->status, answer->cut), &ended);
}

void session_recent_end(struct session_thread *thread, const struct session_answer *answer)
{
    if (__builtin_expect(answer->status >= 400 || answer->cut ||
                             answer->began_ns + thread->slow_ns <= thread->now_ns,
                         0))
        add_ended(thread, answer);
}
