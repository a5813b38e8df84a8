/* SPDX-License-Identifier: MIT */
#include "session/pending.h"

#include "session/tally.h"

#include <stdlib.h>

static void keep_counts(const struct session_exchange *x, struct session_pending *pending)
{
    pending->limited |= x->limited;
    pending->refused |= x->refused && x->unavailable;
    if (!x->metered)
        return;
    pending->metered = true;
    pending->retry_ns = x->retry_ns;
}

struct session_pending *session_pending_begin(const struct session_exchange *x)
{
    struct session_pending *pending = x->resumed;
    const size_t len = x->request->head_len;
    if (pending) {
        keep_counts(x, pending);
        return pending;
    }
    pending = malloc(sizeof(*pending) + len);
    if (!pending)
        return NULL;
    *pending = (struct session_pending){
        .limit_ns = x->thread->now_ns + SESSION_PENDING_NS,
        .id = x->id,
        .began_ns = x->began_ns,
        .body_read = x->body_read,
        .request = *x->request,
    };
    keep_counts(x, pending);
    memcpy(pending->head, x->head, len);
    x->session->pending_count++;
    return pending;
}

void session_pending_undo(const struct session_exchange *x, struct session_pending *pending)
{
    if (pending != x->resumed)
        session_pending_drop(x->session, &pending);
}

void session_pending_wait(struct session_exchange *x, struct session_pending *pending)
{
    x->pending = pending;
    if (x->cache != LOG_CACHE_NONE)
        pending->cache = x->cache;
    x->thread->fault = HTTP_FAULT_NONE;
}

void session_pending_stop(const struct session *s, struct session_pending *pending)
{
    if (pending->since_ns == 0)
        return;
    pending->waited_ns += session_tally_wait_ends(s->thread, pending->since_ns);
    pending->since_ns = 0;
}

static void drop_task(const struct session *s, struct session_pending *pending)
{
    if (pending->task)
        task_cancel(s->thread->shared->tasks, pending->task);
    pending->task = NULL;
}

/* An answer may lend what a ticket has found until the end of the turn. */
static void keep_tickets(const struct session *s, struct session_pending *pending)
{
    struct site_fetch_ticket *ticket;
    while ((ticket = pending->tickets)) {
        pending->tickets = ticket->next;
        if (!site_fetch_leave(ticket)) {
            site_fetch_drop(ticket);
            continue;
        }
        ticket->next = s->thread->fetched;
        s->thread->fetched = ticket;
    }
}

void session_pending_drop(struct session *s, struct session_pending **ref)
{
    struct session_pending *pending = *ref;
    if (!pending)
        return;
    *ref = NULL;
    s->pending_count--;
    session_pending_stop(s, pending);
    drop_task(s, pending);
    keep_tickets(s, pending);
    explicit_bzero(pending->head, pending->request.head_len); /* it may have a password */
    free(pending);
}

bool session_pending_is_over(const struct session *s, const struct session_pending *pending)
{
    if (pending->late || (!pending->task && !pending->ticket))
        return true;
    if (pending->task)
        return task_is_done(s->thread->shared->tasks, pending->task);
    return site_fetch_is_over(pending->ticket);
}

void session_pending_give_up(const struct session *s, struct session_pending *pending)
{
    stats_writer_add(&s->thread->stats, STATS_fetches_late, pending->ticket && !pending->task);
    drop_task(s, pending);
    keep_tickets(s, pending);
    pending->ticket = NULL;
    pending->late = true;
}
