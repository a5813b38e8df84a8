/* SPDX-License-Identifier: MIT
 *
 * The lock of the fetches is taken before that of the pool. The pool holds its lock when it drops a
 * fetch that has run. So dropping frees memory alone, and the last ticket releases the entries.
 */
#include "site/fetch.h"

#include "os/clock.h"
#include "site/load.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUCKETS = 64 };

enum fetch_state {
    FETCH_QUEUED,
    FETCH_RUNS,
    FETCH_DONE,    /* no request has taken the new entry yet */
    FETCH_CLAIMED, /* a request prepares the new entry */
    FETCH_SHARED   /* all requests may have the result */
};

struct site_fetch {
    struct task task; /* first */
    struct site_fetches *fetches;
    struct site_fetch *next;     /* in its bucket, until it has run */
    _Atomic unsigned references; /* of the pool, and of each ticket */
    enum fetch_state state;
    bool abandoned; /* no request waits, and it has not begun */
    const struct site *site;
    struct site_query query; /* its spans are in `storage` */
    struct site_view view;
    struct site_listing_request listing;
    struct site_entry *old; /* is compared with the disk; held. NULL: the cache has none */
    uint64_t checked_ns;    /* of `old`, before this fetch claimed the comparison */
    uint64_t claimed_ns;
    uint64_t started_ns;
    enum site_result result;
    struct site_entry *entry; /* with SITE_FILE; held */
    bool is_new;              /* `entry` is not in the cache */
    struct site_fetch_ticket *tickets;
    const struct site_fetch_ticket *claimer;
    char storage[];
};

struct site_fetches {
    pthread_mutex_t lock;
    struct task_pool *pool;
    unsigned running;
    struct site_fetch *bucket[BUCKETS];
};

static void enter(struct site_fetches *fetches)
{
    CHECK(pthread_mutex_lock(&fetches->lock) == 0);
}

static void leave(struct site_fetches *fetches)
{
    CHECK(pthread_mutex_unlock(&fetches->lock) == 0);
}

struct site_fetches *site_fetch_new(struct task_pool *pool)
{
    struct site_fetches *fetches = calloc(1, sizeof(*fetches));
    if (fetches != NULL) {
        fetches->pool = pool;
        CHECK(pthread_mutex_init(&fetches->lock, NULL) == 0);
    }
    return fetches;
}

bool site_fetch_free(struct site_fetches *fetches)
{
    if (fetches == NULL)
        return true;
    enter(fetches);
    const unsigned running = fetches->running;
    leave(fetches);
    if (running > 0)
        return false;
    CHECK(pthread_mutex_destroy(&fetches->lock) == 0);
    free(fetches);
    return true;
}

/* ---- fetches that others may join ---- */

static bool is_same(const struct site_fetch *fetch, const struct site *site,
                    const struct site_query *query)
{
    return fetch->site == site && fetch->query.hash == query->hash &&
           fetch->query.kind == query->kind && span_equal(fetch->query.key, query->key);
}

/* `begins`: one that has not begun. */
static struct site_fetch *find_fetch(const struct site_fetches *fetches, const struct site *site,
                                     const struct site_query *query, bool begins)
{
    struct site_fetch *fetch = fetches->bucket[query->hash % BUCKETS];
    while (fetch != NULL &&
           !(is_same(fetch, site, query) && (!begins || fetch->state == FETCH_QUEUED)))
        fetch = fetch->next;
    return fetch;
}

static void list_fetch(struct site_fetches *fetches, struct site_fetch *fetch)
{
    struct site_fetch **bucket = &fetches->bucket[fetch->query.hash % BUCKETS];
    fetch->next = *bucket;
    *bucket = fetch;
}

static void unlist_fetch(struct site_fetches *fetches, struct site_fetch *fetch)
{
    struct site_fetch **at = &fetches->bucket[fetch->query.hash % BUCKETS];
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
}

/* ---- the end of a fetch ---- */

static void release_fetch(struct task *task)
{
    struct site_fetch *fetch = (struct site_fetch *)task;
    if (atomic_fetch_sub_explicit(&fetch->references, 1, memory_order_acq_rel) == 1)
        free(fetch);
}

/* The old entry was not compared, or is not what the disk has. The next request compares it. */
static void give_back_recheck(const struct site_fetch *fetch)
{
    if (fetch->old != NULL && fetch->entry != fetch->old)
        site_query_return_recheck(fetch->old, fetch->checked_ns, fetch->claimed_ns);
}

/* No ticket is left, and no thread loads: the caller alone uses the fetch. */
static void release_result(struct site_fetch *fetch)
{
    if (fetch->old != NULL)
        site_cache_release(&fetch->old->cache);
    if (fetch->entry != NULL)
        site_cache_release(&fetch->entry->cache);
    fetch->old = fetch->entry = NULL;
}

/* ---- in a fetching thread ---- */

static bool begin_run(struct site_fetch *fetch)
{
    enter(fetch->fetches);
    const bool begins = !fetch->abandoned;
    if (begins) {
        fetch->state = FETCH_RUNS;
        fetch->started_ns = os_clock_now_ns();
        fetch->fetches->running++;
    }
    leave(fetch->fetches);
    return begins;
}

/* Compares the old entry with what the lookup has found. */
static bool keeps_old(struct site_fetch *fetch, struct site_lookup *lookup)
{
    struct site_entry *old = fetch->old;
    if (old == NULL || !site_load_matches(old, lookup, fetch->started_ns))
        return false;
    struct site_entry *with_made = site_load_with_made(old, lookup);
    site_query_return_recheck(old, lookup->checked_ns, fetch->claimed_ns);
    fetch->is_new = with_made != NULL;
    fetch->entry = fetch->is_new ? with_made : old;
    if (!fetch->is_new)
        site_cache_hold(&old->cache);
    return true;
}

static void look_up(struct site_fetch *fetch)
{
    struct site_lookup lookup;
    const struct site_query *query = &fetch->query;
    lookup.checked_ns = fetch->started_ns;
    fetch->result = site_query_look_up(fetch->site, query, SITE_MAY_WAIT, &lookup);
    if (fetch->result == SITE_ABSENT)
        site_absent_note(fetch->site->absent, query->hash, fetch->started_ns);
    if (fetch->result != SITE_FILE)
        return;
    if (!keeps_old(fetch, &lookup)) {
        fetch->result =
            site_query_load(fetch->site, query, &lookup, fetch->started_ns, &fetch->entry);
        fetch->is_new = fetch->result == SITE_FILE;
    }
    site_lookup_close(&lookup);
}

/* Wakes all requests that wait, but for one. */
static void wake_requests(const struct site_fetch *fetch, const struct site_fetch_ticket *except)
{
    for (struct site_fetch_ticket *each = fetch->tickets; each != NULL; each = each->older)
        if (each != except && !each->left)
            task_finish(fetch->fetches->pool, &each->task);
}

static void end_run(struct site_fetch *fetch)
{
    struct site_fetches *fetches = fetch->fetches;
    give_back_recheck(fetch);
    enter(fetches);
    unlist_fetch(fetches, fetch);
    fetch->state = FETCH_DONE;
    const bool wanted = fetch->tickets != NULL;
    wake_requests(fetch, NULL);
    leave(fetches);
    if (!wanted)
        release_result(fetch);
    enter(fetches);
    fetches->running--; /* the site is not used any more */
    leave(fetches);
}

static void run_fetch(struct task *task)
{
    struct site_fetch *fetch = (struct site_fetch *)task;
    if (begin_run(fetch)) {
        look_up(fetch);
        end_run(fetch);
    }
}

/* ---- new fetches ---- */

static void free_ticket(struct task *task)
{
    free(task);
}

static struct span copy_text(char **at, struct span text)
{
    char *copy = *at;
    *at = (char *)mempcpy(copy, text.at, text.len);
    return span_of(copy, text.len);
}

static struct site_fetch *new_fetch(struct site_fetches *fetches, const struct site *site,
                                    const struct site_query *query)
{
    const struct span text = query->listing != NULL ? query->listing->query : SPAN("");
    struct site_fetch *fetch =
        calloc(1, sizeof(*fetch) + query->path.len + query->key.len + text.len);
    if (fetch == NULL)
        return NULL;
    char *at = fetch->storage;
    fetch->task = (struct task){ .run = run_fetch, .drop = release_fetch };
    fetch->fetches = fetches;
    atomic_init(&fetch->references, 1);
    fetch->site = site;
    fetch->query = *query;
    fetch->view = *query->view;
    fetch->query.view = &fetch->view;
    fetch->query.path = copy_text(&at, query->path);
    fetch->query.key = copy_text(&at, query->key);
    if (query->listing != NULL) {
        fetch->listing = *query->listing;
        fetch->listing.path = fetch->query.path;
        fetch->listing.query = copy_text(&at, text);
        fetch->listing.view = &fetch->view;
        fetch->query.listing = &fetch->listing;
    }
    return fetch;
}

/* Gives the comparison of a stale entry to the fetch, as site_find does to its caller. False:
 * another thread compares it, and the entry is used meanwhile. */
static bool claim_old(struct site_fetch *fetch, struct site_entry *old, uint64_t now_ns)
{
    if (old == NULL)
        return true;
    if (!site_query_claim_recheck(old, &fetch->checked_ns, now_ns))
        return false;
    site_cache_hold(&old->cache);
    fetch->old = old;
    fetch->claimed_ns = now_ns;
    return true;
}

/* Under the lock. */
static void add_ticket(struct site_fetch *fetch, struct site_fetch_ticket *ticket)
{
    atomic_fetch_add_explicit(&fetch->references, 1, memory_order_relaxed);
    ticket->fetch = fetch;
    ticket->late = fetch->state != FETCH_QUEUED;
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

/* Under the lock. The ticket joins the fetch that is under way, or begins one. `again`: the result
 * of the last one was too early, so it joins only one that has not begun. SITE_FILE: another thread
 * compares *ret_entry, which is used meanwhile. */
static enum site_result begin_fetch(struct site_fetches *fetches, struct site_fetch_ticket *ticket,
                                    const struct site *site, struct site_cache_reader *reader,
                                    const struct site_query *query, bool again,
                                    struct site_entry **ret_entry)
{
    struct site_fetch *fetch = find_fetch(fetches, site, query, again);
    if (fetch == NULL) {
        struct site_entry *old = site_query_find_entry(site, reader, query);
        fetch = new_fetch(fetches, site, query);
        if (fetch == NULL)
            return SITE_BUSY;
        if (!claim_old(fetch, old, ticket->joined_ns)) {
            release_fetch(&fetch->task);
            *ret_entry = old;
            return SITE_FILE;
        }
        if (!task_submit(fetches->pool, TASK_FETCHES, &fetch->task)) {
            give_back_recheck(fetch);
            release_result(fetch);
            release_fetch(&fetch->task);
            return SITE_BUSY;
        }
        list_fetch(fetches, fetch);
    }
    add_ticket(fetch, ticket);
    return SITE_NOT_IN_MEMORY;
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
    enter(fetches);
    const enum site_result result =
        begin_fetch(fetches, ticket, site, reader, query, again, ret_entry);
    leave(fetches);
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
    return fetch->state == FETCH_DONE || fetch->state == FETCH_SHARED ||
           (fetch->state == FETCH_CLAIMED && fetch->claimer == ticket);
}

bool site_fetch_is_over(const struct site_fetch_ticket *ticket)
{
    enter(ticket->fetches);
    const bool over = is_over(ticket->fetch, ticket);
    leave(ticket->fetches);
    return over;
}

/* The fetch may have read the file so long before the request began that it says nothing about the
 * file at that time. A file that was absent may have appeared at any moment before the request. */
static bool is_too_early(const struct site_fetch *fetch, const struct site_fetch_ticket *ticket)
{
    return (fetch->result == SITE_ABSENT && ticket->late) ||
           (int64_t)(ticket->joined_ns - fetch->started_ns) >= (int64_t)SITE_FRESH_NS;
}

static struct site_fetch_ticket **find_ticket(struct site_fetch_ticket **list,
                                              const struct site *site,
                                              const struct site_query *query)
{
    while (*list != NULL && !is_same((*list)->fetch, site, query))
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
    const bool is_first = fetch->state == FETCH_DONE;
    const bool claims = is_first && fetch->is_new;
    *ret_changed = is_first && fetch->old != NULL && fetch->result != SITE_BUSY &&
                   fetch->result != SITE_BROKEN && fetch->entry != fetch->old;
    if (is_first)
        fetch->state = claims ? FETCH_CLAIMED : FETCH_SHARED;
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
        enter(fetches);
        const bool over = is_over(fetch, ticket);
        const bool useless = over && is_too_early(fetch, ticket);
        if (over && !useless)
            result = use_result(fetch, ticket, ret_entry, ret_new, &changed);
        leave(fetches);
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

void site_fetch_published(struct site_fetch_ticket *ticket, struct site_entry *entry)
{
    struct site_fetch *fetch = ticket->fetch;
    enter(fetch->fetches);
    if (fetch->state == FETCH_CLAIMED && fetch->claimer == ticket && fetch->entry == entry) {
        site_cache_hold(&entry->cache);
        fetch->state = FETCH_SHARED;
        wake_requests(fetch, ticket);
    }
    leave(fetch->fetches);
}

bool site_fetch_leave(struct site_fetch_ticket *ticket)
{
    struct site_fetches *fetches = ticket->fetches;
    enter(fetches);
    ticket->left = true;
    const bool found = ticket->fetch->state != FETCH_QUEUED && ticket->fetch->state != FETCH_RUNS;
    leave(fetches);
    task_forget(fetches->pool, &ticket->task);
    return found;
}

void site_fetch_drop(struct site_fetch_ticket *ticket)
{
    struct site_fetches *fetches = ticket->fetches;
    struct site_fetch *fetch = ticket->fetch;
    enter(fetches);
    CHECK(fetch->state != FETCH_CLAIMED || fetch->claimer != ticket);
    remove_ticket(fetch, ticket);
    const bool last = fetch->tickets == NULL;
    const bool cancels = last && fetch->state == FETCH_QUEUED;
    const bool releases = last && (fetch->state == FETCH_DONE || fetch->state == FETCH_SHARED);
    if (cancels) {
        fetch->abandoned = true;
        unlist_fetch(fetches, fetch);
    }
    leave(fetches);
    if (cancels)
        give_back_recheck(fetch);
    if (releases || cancels)
        release_result(fetch);
    if (cancels)
        task_cancel(fetches->pool, &fetch->task);
    release_fetch(&fetch->task);
    task_cancel(fetches->pool, &ticket->task);
}
