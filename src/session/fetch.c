/* SPDX-License-Identifier: MIT */
#include "session/fetch.h"

#include "session/pending.h"
#include "session/tally.h"

/* The request waits for the disk. A comparison that was made for it is decided. */
static void begin_wait(struct session_exchange *x, struct session_pending *pending,
                       struct site_fetch_ticket *ticket)
{
    pending->ticket = ticket;
    pending->since_ns = x->thread->now_ns;
    if (pending->task)
        task_cancel(x->thread->shared->tasks, pending->task);
    pending->task = NULL;
    pending->access = x->access;
    pending->verdict = (enum session_access_verdict)x->verdict;
    session_pending_wait(x, pending);
    x->fetches = true;
    session_tally_wait_begins(x->thread);
}

/* Has the disk asked in another thread, or takes what that has found. */
static enum site_result begin_fetch(struct session_exchange *x, struct site_query *query,
                                    struct site_entry **ret_entry, bool *ret_new)
{
    struct session_thread *thread = x->thread;
    if (!x->request || (x->resumed && x->resumed->late))
        return SITE_BUSY;
    struct session_pending *pending = session_pending_begin(x);
    if (!pending)
        return SITE_BUSY;
    struct site_fetch_wait wait = {
        .home = thread->home,
        .owner = x->session,
        .tickets = &pending->tickets,
    };
    const enum site_result result = site_fetch_find(thread->shared->fetches, &wait, x->site->site,
                                                    thread->reader, query, thread->now_ns,
                                                    ret_entry, ret_new);
    if (result == SITE_NOT_IN_MEMORY) {
        begin_wait(x, pending, wait.last);
        return SITE_BUSY;
    }
    session_pending_undo(x, pending);
    if (result == SITE_BUSY && !wait.last && !x->unavailable) {
        stats_writer_add(&thread->stats,
                         wait.limited ? STATS_listings_refused : STATS_fetches_refused, 1);
        x->refused = wait.limited;
        x->crowded = !wait.limited;
    }
    return result;
}

enum site_result session_fetch_otherwise(struct session_exchange *x, struct site_query *query,
                                         enum site_result result, struct site_entry **ret_entry,
                                         bool *ret_new)
{
    if (result == SITE_NOT_IN_MEMORY)
        result = begin_fetch(x, query, ret_entry, ret_new);
    if (result != SITE_FILE)
        session_tally_follow_cache(x->thread->shared);
    return result;
}

enum site_result session_fetch_known(struct session_exchange *x, struct site_query *query,
                                     struct site_entry **ret_entry, bool *ret_new)
{
    const struct session_thread *thread = x->thread;
    const bool was_refused = x->resumed && x->resumed->refused && !x->unavailable;
    if (x->pending || was_refused)
        return SITE_BUSY;
    enum site_result result = SITE_NOT_IN_MEMORY;
    if (!x->resumed || !site_fetch_has(x->resumed->tickets, x->site->site, query))
        result = site_find_query(x->site->site, thread->reader, query, thread->now_ns,
                                 thread->patience, ret_entry, ret_new);
    return session_fetch_otherwise(x, query, result, ret_entry, ret_new);
}

enum site_result session_fetch_page(struct session_exchange *x, enum http_status status,
                                    struct site_query *query, struct site_entry **ret_entry,
                                    bool *ret_new)
{
    const struct session_thread *thread = x->thread;
    x->unavailable = status == HTTP_SERVICE_UNAVAILABLE;
    if (x->request && !x->session->refusing && !x->crowded)
        return session_fetch_find(x, query, ret_entry, ret_new);
    const enum site_result result = site_find_query(
        x->site->site, thread->reader, query, thread->now_ns, thread->patience, ret_entry, ret_new);
    if (result != SITE_FILE)
        session_tally_follow_cache(x->thread->shared);
    return result;
}

void session_fetch_publish(const struct session_exchange *x, const void *found,
                           struct site_entry *entry)
{
    struct site_fetch_ticket *each = x->resumed ? x->resumed->tickets : NULL;
    for (; each; each = each->next)
        site_fetch_published(each, found, entry);
}
