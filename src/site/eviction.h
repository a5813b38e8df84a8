/* SPDX-License-Identifier: MIT
 *
 * The order in which entries leave a full cache, by either policy. Entries stand
 * in a queue of all, and those that hold descriptors in a second one, so that
 * room for a descriptor is found without looking through the others. Private to
 * the cache, and under its lock; knows no limits and no table.
 */
#pragma once

#include "site/cache.h"

enum site_eviction_queue { SITE_EVICTION_ALL, SITE_EVICTION_OPEN, SITE_EVICTION_QUEUES };

struct site_eviction {
    enum site_cache_policy policy;
    struct {
        struct site_cache_entry *newest, *oldest;
        struct site_cache_entry *hand; /* sieve: where to look next; NULL: at the oldest */
        size_t count;
    } queue[SITE_EVICTION_QUEUES];
};

/* A newcomer. */
void site_eviction_enter(struct site_eviction *eviction, struct site_cache_entry *entry);

/* It is no longer in the cache. */
void site_eviction_leave(struct site_eviction *eviction, struct site_cache_entry *entry);

/* lru: it was used just now. */
void site_eviction_touch(struct site_eviction *eviction, struct site_cache_entry *entry);

/* The next one to leave, among all or among those that hold descriptors; it still
 * stands in its queues. NULL when the queue is empty. */
struct site_cache_entry *site_eviction_victim(struct site_eviction *eviction,
                                              enum site_eviction_queue which);
