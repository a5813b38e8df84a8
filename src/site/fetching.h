/* SPDX-License-Identifier: MIT
 *
 * One fetch (site/fetch.h): it is begun, found by others that need the same lookup, run by a
 * fetching thread, and freed. site/fetch.c has the requests that wait for it. Private to these two
 * files.
 *
 * The lock of the fetches is taken before that of the pool. The pool holds its lock when it drops a
 * fetch that has run. So dropping frees memory alone, and the last ticket releases the entries.
 */
#pragma once

#include "site/fetch.h"

#include <pthread.h>
#include <stddef.h>

enum { SITE_FETCHING_BUCKETS = 64 };

enum site_fetching_state {
    SITE_FETCHING_QUEUED,
    SITE_FETCHING_RUNS,
    SITE_FETCHING_DONE,    /* no request has taken the new entry yet */
    SITE_FETCHING_CLAIMED, /* a request prepares the new entry */
    SITE_FETCHING_SHARED   /* all requests may have the result */
};

struct site_fetch {
    struct task task; /* first */
    struct site_fetches *fetches;
    struct site_fetch *next;     /* in its bucket, until it has run */
    _Atomic unsigned references; /* of the pool, and of each ticket */
    enum site_fetching_state state;
    bool abandoned;       /* no request waits, and it has not begun */
    bool counts;          /* a listing that counts in the limit */
    _Atomic bool stopped; /* no request waits */
    const struct site *site;
    struct site_query query; /* its spans are in `storage` */
    struct site_view view;
    struct site_listing_request listing;
    struct site_entry *old; /* is compared with the disk; held. NULL: the cache has none */
    uint64_t checked_ns;    /* of `old`, before this fetch claimed the comparison */
    uint64_t claimed_ns;
    uint64_t started_ns;
    enum site_result result;  /* SITE_NOT_IN_MEMORY: it was stopped */
    struct site_entry *entry; /* with SITE_FILE; held */
    bool is_new;              /* `entry` is not in the cache */
    struct site_fetch_ticket *tickets;
    const struct site_fetch_ticket *claimer;
    _Alignas(max_align_t) char storage[];
};

struct site_fetches {
    pthread_mutex_t lock;
    struct task_pool *pool;
    struct site_listing_limit *listings;
    _Atomic unsigned tasks; /* of the pool, from their submission to their drop */
    struct site_fetch *bucket[SITE_FETCHING_BUCKETS];
};

void site_fetching_lock(struct site_fetches *fetches);
void site_fetching_unlock(struct site_fetches *fetches);

/* ---- under the lock ---- */

bool site_fetching_is(const struct site_fetch *fetch, const struct site *site,
                      const struct site_query *query);

/* The fetch for this query that is under way. NULL: there is none. `begins`: it has not begun. */
struct site_fetch *site_fetching_find(const struct site_fetches *fetches, const struct site *site,
                                      const struct site_query *query, bool begins);

/* Begins a fetch. `old` is in the cache, or NULL, and the fetch compares it with the disk.
 * SITE_NOT_IN_MEMORY: *ret_fetch waits for a thread, and the caller adds a ticket. SITE_FILE:
 * another thread compares `old`, which is used meanwhile. SITE_BUSY: out of memory, too many
 * fetches wait, or with *ret_limited too many listings. */
enum site_result site_fetching_begin(struct site_fetches *fetches, const struct site *site,
                                     const struct site_query *query, struct site_entry *old,
                                     uint64_t now_ns, struct site_fetch **ret_fetch,
                                     bool *ret_limited);

/* The listing counts no longer. */
void site_fetching_end_count(struct site_fetch *fetch);

/* Wakes all requests that wait, except for one. */
void site_fetching_wake(const struct site_fetch *fetch, const struct site_fetch_ticket *except);

/* No request waits, and it has not begun. site_fetching_cancel follows, without the lock. */
void site_fetching_abandon(struct site_fetch *fetch);

/* ---- without the lock ---- */

void site_fetching_cancel(struct site_fetch *fetch);

/* No ticket is left, and no thread loads: releases the entries. */
void site_fetching_release_result(struct site_fetch *fetch);

/* Gives up a reference. The last one frees the fetch. */
void site_fetching_release(struct site_fetch *fetch);
