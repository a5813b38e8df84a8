/* SPDX-License-Identifier: MIT */
#include "site/fetching.h"

#include "os/clock.h"
#include "site/load.h"

#include <stdlib.h>

void site_fetching_lock(struct site_fetches *fetches)
{
    CHECK(pthread_mutex_lock(&fetches->lock) == 0);
}

void site_fetching_unlock(struct site_fetches *fetches)
{
    CHECK(pthread_mutex_unlock(&fetches->lock) == 0);
}

/* ---- fetches that others may join ---- */

bool site_fetching_is(const struct site_fetch *fetch, const struct site *site,
                      const struct site_query *query)
{
    return fetch->site == site && fetch->query.hash == query->hash &&
           fetch->query.kind == query->kind && span_equal(fetch->query.key, query->key);
}

struct site_fetch *site_fetching_find(const struct site_fetches *fetches, const struct site *site,
                                      const struct site_query *query, bool begins)
{
    struct site_fetch *fetch = fetches->bucket[query->hash % SITE_FETCHING_BUCKETS];
    while (fetch != NULL && !(site_fetching_is(fetch, site, query) &&
                              (!begins || fetch->state == SITE_FETCHING_QUEUED)))
        fetch = fetch->next;
    return fetch;
}

static void list_fetch(struct site_fetch *fetch)
{
    struct site_fetch **bucket = &fetch->fetches->bucket[fetch->query.hash % SITE_FETCHING_BUCKETS];
    fetch->next = *bucket;
    *bucket = fetch;
}

static void unlist_fetch(struct site_fetch *fetch)
{
    struct site_fetch **at = &fetch->fetches->bucket[fetch->query.hash % SITE_FETCHING_BUCKETS];
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
}

/* ---- the end of a fetch ---- */

void site_fetching_release(struct site_fetch *fetch)
{
    if (atomic_fetch_sub_explicit(&fetch->references, 1, memory_order_acq_rel) == 1)
        free(fetch);
}

/* The last step of the task: site_fetch_free may follow. */
static void drop_fetch(struct task *task)
{
    struct site_fetch *fetch = (struct site_fetch *)task;
    struct site_fetches *fetches = fetch->fetches;
    site_fetching_release(fetch);
    atomic_fetch_sub_explicit(&fetches->tasks, 1, memory_order_release);
}

/* The old entry was not compared, or is not what the disk has. The next request compares it. */
static void give_back_recheck(const struct site_fetch *fetch)
{
    if (fetch->old != NULL && fetch->entry != fetch->old)
        site_query_return_recheck(fetch->old, fetch->checked_ns, fetch->claimed_ns);
}

void site_fetching_end_count(struct site_fetch *fetch)
{
    if (fetch->counts)
        site_listing_end(fetch->fetches->listings);
    fetch->counts = false;
}

void site_fetching_release_result(struct site_fetch *fetch)
{
    site_fetching_end_count(fetch);
    if (fetch->old != NULL)
        site_cache_release(&fetch->old->cache);
    if (fetch->entry != NULL)
        site_cache_release(&fetch->entry->cache);
    fetch->old = fetch->entry = NULL;
}

void site_fetching_abandon(struct site_fetch *fetch)
{
    fetch->abandoned = true;
    unlist_fetch(fetch);
}

void site_fetching_cancel(struct site_fetch *fetch)
{
    give_back_recheck(fetch);
    site_fetching_release_result(fetch);
    task_cancel(fetch->fetches->pool, &fetch->task);
}

void site_fetching_wake(const struct site_fetch *fetch, const struct site_fetch_ticket *except)
{
    for (struct site_fetch_ticket *each = fetch->tickets; each != NULL; each = each->older)
        if (each != except && !each->left)
            task_finish(fetch->fetches->pool, &each->task);
}

/* ---- in a fetching thread ---- */

static bool begin_run(struct site_fetch *fetch)
{
    site_fetching_lock(fetch->fetches);
    const bool begins = !fetch->abandoned;
    if (begins) {
        fetch->state = SITE_FETCHING_RUNS;
        fetch->started_ns = os_clock_now_ns();
    }
    site_fetching_unlock(fetch->fetches);
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

static void end_run(struct site_fetch *fetch)
{
    struct site_fetches *fetches = fetch->fetches;
    give_back_recheck(fetch);
    site_fetching_lock(fetches);
    unlist_fetch(fetch);
    fetch->state = SITE_FETCHING_DONE;
    const bool wanted = fetch->tickets != NULL;
    site_fetching_wake(fetch, NULL);
    site_fetching_unlock(fetches);
    if (!wanted)
        site_fetching_release_result(fetch);
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

static struct span copy_text(char **at, struct span text)
{
    char *copy = *at;
    if (text.len > 0)
        *at = (char *)mempcpy(copy, text.at, text.len);
    return span_of(copy, text.len);
}

/* Copies the request for a listing. The context is first in the storage, so it is aligned. */
static void copy_listing(struct site_fetch *fetch, const struct site_listing_request *from,
                         char **at)
{
    fetch->listing = *from;
    if (from->context_bytes > 0)
        fetch->listing.context = copy_text(at, span_of(from->context, from->context_bytes)).at;
    fetch->listing.query = copy_text(at, from->query);
    fetch->listing.view = &fetch->view;
    fetch->listing.stopped = &fetch->stopped;
    fetch->query.listing = &fetch->listing;
}

static struct site_fetch *new_fetch(struct site_fetches *fetches, const struct site *site,
                                    const struct site_query *query)
{
    const struct site_listing_request *listing = query->listing;
    const size_t listing_bytes = listing != NULL ? listing->context_bytes + listing->query.len : 0;
    struct site_fetch *fetch =
        calloc(1, sizeof(*fetch) + query->path.len + query->key.len + listing_bytes);
    if (fetch == NULL)
        return NULL;
    char *at = fetch->storage;
    fetch->task = (struct task){ .run = run_fetch, .drop = drop_fetch };
    fetch->fetches = fetches;
    atomic_init(&fetch->references, 1);
    fetch->site = site;
    fetch->query = *query;
    fetch->view = *query->view;
    fetch->query.view = &fetch->view;
    if (listing != NULL)
        copy_listing(fetch, listing, &at);
    fetch->query.path = fetch->listing.path = copy_text(&at, query->path);
    fetch->query.key = copy_text(&at, query->key);
    return fetch;
}

/* Gives the comparison of a stale entry to the fetch, as site_find does to its caller. False:
 * another thread compares it. */
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

/* Puts the fetch into its queue. `*ret_limited`: there are too many listings. */
static bool submit_fetch(struct site_fetch *fetch, bool *ret_limited)
{
    struct site_fetches *fetches = fetch->fetches;
    const bool lists = fetch->query.kind == SITE_QUERY_LISTING;
    *ret_limited = lists && !site_listing_begin(fetches->listings);
    fetch->counts = lists && !*ret_limited;
    if (*ret_limited)
        return false;
    atomic_fetch_add_explicit(&fetches->tasks, 1, memory_order_relaxed);
    const bool taken = task_submit(fetches->pool, lists ? TASK_LISTINGS : TASK_FETCHES,
                                   fetch->site->disk, &fetch->task);
    if (!taken)
        atomic_fetch_sub_explicit(&fetches->tasks, 1, memory_order_relaxed);
    return taken;
}

enum site_result site_fetching_begin(struct site_fetches *fetches, const struct site *site,
                                     const struct site_query *query, struct site_entry *old,
                                     uint64_t now_ns, struct site_fetch **ret_fetch,
                                     bool *ret_limited)
{
    struct site_fetch *fetch = new_fetch(fetches, site, query);
    if (fetch == NULL)
        return SITE_BUSY;
    if (!claim_old(fetch, old, now_ns)) {
        site_fetching_release(fetch);
        return SITE_FILE;
    }
    if (!submit_fetch(fetch, ret_limited)) {
        give_back_recheck(fetch);
        site_fetching_release_result(fetch);
        site_fetching_release(fetch);
        return SITE_BUSY;
    }
    list_fetch(fetch);
    *ret_fetch = fetch;
    return SITE_NOT_IN_MEMORY;
}
