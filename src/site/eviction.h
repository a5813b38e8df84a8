/* SPDX-License-Identifier: MIT
 *
 * The order in which entries leave a full cache, by either policy. Entries stand in a queue of
 * all; entries that hold descriptors also stand in a second queue, so that one of them is found
 * without a search. Private to the cache, and under its lock. Knows no limits and no table.
 */
#pragma once

#include "site/cache.h"

enum site_eviction_queue { SITE_EVICTION_ALL, SITE_EVICTION_OPEN, SITE_EVICTION_QUEUES };

struct site_eviction {
    enum site_cache_policy policy;
    struct {
        struct site_cache_entry *newest, *oldest;
        struct site_cache_entry *hand; /* sieve: the next candidate; NULL: the oldest */
        size_t count;
    } queue[SITE_EVICTION_QUEUES];
    struct site_cache_entry *sweep; /* in the queue of all: where site_eviction_sweep continues */
};

/* Adds a new entry. */
void site_eviction_enter(struct site_eviction *eviction, struct site_cache_entry *entry);

/* Removes an entry. */
void site_eviction_leave(struct site_eviction *eviction, struct site_cache_entry *entry);

/* lru: moves an entry that was just used. */
void site_eviction_touch(struct site_eviction *eviction, struct site_cache_entry *entry);

/* The next entry of the queue of all, from the oldest to the newest and round again. NULL when the
 * queue is empty. */
struct site_cache_entry *site_eviction_sweep(struct site_eviction *eviction);

/* sieve: the most entries that the hand passes for one eviction. */
enum { SITE_EVICTION_STEPS = 1024 };

/* The next entry to leave, of one of the queues. It stays in its queues. NULL when the queue is
 * empty. */
struct site_cache_entry *site_eviction_victim(struct site_eviction *eviction,
                                              enum site_eviction_queue which);
