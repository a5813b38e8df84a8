/* SPDX-License-Identifier: MIT */
#include "site/fetch.h"

#include "site/fetching.h"

#include <stdlib.h>

struct site_fetches *site_fetch_new(struct task_pool *pool, struct site_listing_limit *listings)
{
    struct site_fetches *fetches = calloc(1, sizeof(*fetches));
    if (fetches != NULL) {
        fetches->pool = pool;
        fetches->listings = listings;
        CHECK(pthread_mutex_init(&fetches->lock, NULL) == 0);
    }
    return fetches;
}

bool site_fetch_free(struct site_fetches *fetches)
{
    if (fetches == NULL)
        return true;
    /* A thread that has taken a task uses this before the fetch begins, and behind its end. */
    if (atomic_load_explicit(&fetches->tasks, memory_order_acquire) > 0)
        return false;
    CHECK(pthread_mutex_destroy(&fetches->lock) == 0);
    free(fetches);
    return true;
}

/* ---- tickets ---- */

static void free_ticket(struct task *task)
{
    free(task);
}

/* Under the lock. */
static void add_ticket(struct site_fetch *fetch, struct site_fetch_ticket *ticket)
{
    atomic_fetch_add_explicit(&fetch->references, 1, memory_order_relaxed);
    atomic_store_explicit(&fetch->stopped, false, memory_order_relaxed);
    ticket->fetch = fetch;
    ticket->late = fetch->state != SITE_FETCHING_QUEUED;
    ticket->newer = NULL;
    ticket->older = fetch->tickets;
    if (ticket->older != NULL)
        ticket->older->newer = ticket;
    fetch->tickets = ticket;
}

static void remove_ticket(struct site_fetch *fetch, struct site_fetch_ticket *ticket)
{
    if (ticket->older != NULL)
        ticket->older->newer = ticket->newer;
    if (ticket->newer != NULL)
        ticket->newer->older = ticket->older;
    else
        fetch->tickets = ticket->older;
}

/* Under the lock. The ticket joins the fetch that is under way, or begins one. `again`: the last
 * result was of no use, so the ticket joins only a fetch that has not begun. SITE_FILE: another
 * thread compares *ret_entry, which is used meanwhile. */
static enum site_result begin_fetch(struct site_fetches *fetches, struct site_fetch_ticket *ticket,
                                    const struct site *site, struct site_cache_reader *reader,
                                    const struct site_query *query, bool again,
                                    struct site_entry **ret_entry, bool *ret_limited)
{
    struct site_fetch *fetch = site_fetching_find(fetches, site, query, again);
    enum site_result result = SITE_NOT_IN_MEMORY;
    if (fetch == NULL) {
        *ret_entry = site_query_find_entry(site, reader, query);
        result = site_fetching_begin(fetches, site, query, *ret_entry, ticket->joined_ns, &fetch,
                                     ret_limited);
    }
    if (result == SITE_NOT_IN_MEMORY)
        add_ticket(fetch, ticket);
    return result;
}

static enum site_result take_ticket(struct site_fetches *fetches, struct site_fetch_wait *wait,
                                    const struct site *site, struct site_cache_reader *reader,
                                    const struct site_query *query, bool again, uint64_t now_ns,
                                    struct site_entry **ret_entry)
{
    struct site_fetch_ticket *ticket = calloc(1, sizeof(*ticket));
    if (ticket == NULL)
        return SITE_BUSY;
    ticket->task = (struct task){ .drop = free_ticket, .home = wait->home, .owner = wait->owner };
    ticket->fetches = fetches;
    ticket->joined_ns = now_ns;
    site_fetching_lock(fetches);
    const enum site_result result =
        begin_fetch(fetches, ticket, site, reader, query, again, ret_entry, &wait->limited);
    site_fetching_unlock(fetches);
    if (result != SITE_NOT_IN_MEMORY) {
        free(ticket);
        return result;
    }
    ticket->next = *wait->tickets;
    *wait->tickets = wait->last = ticket;
    return result;
}

/* ---- results ---- */

static bool is_over(const struct site_fetch *fetch, const struct site_fetch_ticket *ticket)
{
    return fetch->state == SITE_FETCHING_DONE || fetch->state == SITE_FETCHING_SHARED ||
           (fetch->state == SITE_FETCHING_CLAIMED && fetch->claimer == ticket);
}

bool site_fetch_is_over(const struct site_fetch_ticket *ticket)
{
    site_fetching_lock(ticket->fetches);
    const bool over = is_over(ticket->fetch, ticket);
    site_fetching_unlock(ticket->fetches);
    return over;
}

/* The fetch may have read the file so long before the request began that it says nothing about the
 * file at that time. A file that was absent may have appeared at any moment before the request. A
 * listing may have been stopped just before the request joined. */
static bool is_useless(const struct site_fetch *fetch, const struct site_fetch_ticket *ticket)
{
    return fetch->result == SITE_NOT_IN_MEMORY || (fetch->result == SITE_ABSENT && ticket->late) ||
           (int64_t)(ticket->joined_ns - fetch->started_ns) >= (int64_t)SITE_FRESH_NS;
}

static struct site_fetch_ticket **find_ticket(struct site_fetch_ticket **list,
                                              const struct site *site,
                                              const struct site_query *query)
{
    while (*list != NULL && !site_fetching_is((*list)->fetch, site, query))
        list = &(*list)->next;
    return list;
}

bool site_fetch_has(struct site_fetch_ticket *tickets, const struct site *site,
                    struct site_query *query)
{
    site_query_complete(site, query);
    return *find_ticket(&tickets, site, query) != NULL;
}

/* Under the lock. Takes the result for the request of the ticket. `*ret_changed`: the old entry
 * leaves the cache. */
static enum site_result use_result(struct site_fetch *fetch, const struct site_fetch_ticket *ticket,
                                   struct site_entry **ret_entry, bool *ret_new, bool *ret_changed)
{
    const bool is_first = fetch->state == SITE_FETCHING_DONE;
    const bool claims = is_first && fetch->is_new;
    *ret_changed = is_first && fetch->old != NULL && fetch->result != SITE_BUSY &&
                   fetch->result != SITE_BROKEN && fetch->entry != fetch->old;
    if (is_first)
        fetch->state = claims ? SITE_FETCHING_CLAIMED : SITE_FETCHING_SHARED;
    if (claims)
        fetch->claimer = ticket; /* and owns the reference, until site_fetch_published */
    *ret_entry = fetch->entry;
    *ret_new = claims;
    return fetch->result;
}

enum site_result site_fetch_find(struct site_fetches *fetches, struct site_fetch_wait *wait,
                                 const struct site *site, struct site_cache_reader *reader,
                                 struct site_query *query, uint64_t now_ns,
                                 struct site_entry **ret_entry, bool *ret_new)
{
    bool changed = false;
    site_query_complete(site, query);
    struct site_fetch_ticket **at = find_ticket(wait->tickets, site, query);
    struct site_fetch_ticket *ticket = *at;
    const bool again = ticket != NULL;
    *ret_new = false;
    if (again) {
        struct site_fetch *fetch = ticket->fetch;
        enum site_result result = SITE_NOT_IN_MEMORY;
        site_fetching_lock(fetches);
        const bool over = is_over(fetch, ticket);
        const bool useless = over && is_useless(fetch, ticket);
        if (over)
            site_fetching_end_count(fetch);
        if (over && !useless)
            result = use_result(fetch, ticket, ret_entry, ret_new, &changed);
        site_fetching_unlock(fetches);
        if (changed)
            site_cache_remove(reader, &fetch->old->cache);
        wait->last = ticket;
        if (!useless)
            return result;
        *at = ticket->next;
        site_fetch_drop(ticket);
    }
    return take_ticket(fetches, wait, site, reader, query, again, now_ns, ret_entry);
}

void site_fetch_published(struct site_fetch_ticket *ticket, const void *found,
                          struct site_entry *entry)
{
    struct site_fetch *fetch = ticket->fetch;
    site_fetching_lock(fetch->fetches);
    if (fetch->state == SITE_FETCHING_CLAIMED && fetch->claimer == ticket &&
        fetch->entry == found) {
        fetch->entry = entry;
        site_cache_hold(&entry->cache);
        fetch->state = SITE_FETCHING_SHARED;
        site_fetching_wake(fetch, ticket);
    }
    site_fetching_unlock(fetch->fetches);
}

bool site_fetch_leave(struct site_fetch_ticket *ticket)
{
    struct site_fetches *fetches = ticket->fetches;
    site_fetching_lock(fetches);
    ticket->left = true;
    const bool found = ticket->fetch->state != SITE_FETCHING_QUEUED &&
                       ticket->fetch->state != SITE_FETCHING_RUNS;
    site_fetching_unlock(fetches);
    task_forget(fetches->pool, &ticket->task);
    return found;
}

void site_fetch_drop(struct site_fetch_ticket *ticket)
{
    struct site_fetches *fetches = ticket->fetches;
    struct site_fetch *fetch = ticket->fetch;
    site_fetching_lock(fetches);
    CHECK(fetch->state != SITE_FETCHING_CLAIMED || fetch->claimer != ticket);
    remove_ticket(fetch, ticket);
    const bool last = fetch->tickets == NULL;
    const bool cancels = last && fetch->state == SITE_FETCHING_QUEUED;
    atomic_store_explicit(&fetch->stopped, last, memory_order_relaxed);
    const bool releases =
        last && (fetch->state == SITE_FETCHING_DONE || fetch->state == SITE_FETCHING_SHARED);
    if (cancels)
        site_fetching_abandon(fetch);
    site_fetching_unlock(fetches);
    if (cancels)
        site_fetching_cancel(fetch);
    if (releases)
        site_fetching_release_result(fetch);
    site_fetching_release(fetch);
    task_cancel(fetches->pool, &ticket->task);
}
