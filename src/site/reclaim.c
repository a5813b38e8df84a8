/* SPDX-License-Identifier: MIT
 *
 * Retired entries, and the readers that they wait for. The header has the argument. Nothing here
 * takes a lock: the cache's own lock protects the list.
 */
#include "site/reclaim.h"

void site_reclaim_init(struct site_reclaim *reclaim, struct site_cache_reader *readers)
{
    *reclaim = (struct site_reclaim){ .readers = readers };
    atomic_init(&reclaim->epoch, SITE_RECLAIM_OFFLINE + 1);
}

void site_reclaim_admit(struct site_reclaim *reclaim, unsigned count, struct site_cache *cache)
{
    for (; reclaim->reader_count < count; reclaim->reader_count++)
        reclaim->readers[reclaim->reader_count] = (struct site_cache_reader){ .cache = cache };
}

void site_reclaim_retire(struct site_reclaim *reclaim, struct site_cache_entry *entry)
{
    const uint64_t epoch = atomic_load_explicit(&reclaim->epoch, memory_order_relaxed);
    entry->retired.at = epoch;
    entry->retired.next = NULL;
    if (reclaim->newest != NULL)
        reclaim->newest->retired.next = entry;
    else
        reclaim->oldest = entry;
    reclaim->newest = entry;
    reclaim->bytes += entry->size_bytes;
    atomic_store_explicit(&reclaim->waiting, true, memory_order_relaxed);
    atomic_store_explicit(&reclaim->epoch, epoch + 1, memory_order_release);
}

/* The epoch that a reader has seen; UINT64_MAX when it is offline. */
static uint64_t seen_by(struct site_cache_reader *reader)
{
    uint64_t seen = atomic_load_explicit(&reader->seen, memory_order_acquire);
    if (seen == SITE_RECLAIM_OFFLINE) /* changes nothing, but orders this access (see the header) */
        seen = atomic_fetch_or_explicit(&reader->seen, 0, memory_order_acq_rel);
    return seen != SITE_RECLAIM_OFFLINE ? seen : UINT64_MAX;
}

/* The lowest epoch that an online reader has seen, or one that is low enough to keep the oldest
 * entry. UINT64_MAX without an online reader. The reader that delayed the last collection is
 * tried first, because there may be thousands of readers. */
static uint64_t lowest_seen(struct site_reclaim *reclaim)
{
    const uint64_t oldest = reclaim->oldest->retired.at;
    uint64_t lowest = UINT64_MAX;
    if (reclaim->blocker < reclaim->reader_count)
        lowest = seen_by(&reclaim->readers[reclaim->blocker]);
    for (unsigned i = 0; i < reclaim->reader_count && lowest > oldest; i++) {
        const uint64_t seen = seen_by(&reclaim->readers[i]);
        if (seen <= oldest)
            reclaim->blocker = i;
        if (seen < lowest)
            lowest = seen;
    }
    return lowest;
}

/* Cuts off and returns the front of the list: entries stamped before `epoch`. */
static struct site_cache_entry *take_before(struct site_reclaim *reclaim, uint64_t epoch)
{
    struct site_cache_entry *const list = reclaim->oldest;
    struct site_cache_entry *last = NULL;
    for (struct site_cache_entry *e = list; e != NULL && e->retired.at < epoch;
         e = e->retired.next) {
        reclaim->bytes -= e->size_bytes;
        last = e;
    }
    if (last == NULL)
        return NULL;
    reclaim->oldest = last->retired.next;
    last->retired.next = NULL;
    if (reclaim->oldest == NULL) {
        reclaim->newest = NULL;
        atomic_store_explicit(&reclaim->waiting, false, memory_order_relaxed);
    }
    return list;
}

struct site_cache_entry *site_reclaim_collect(struct site_reclaim *reclaim)
{
    return reclaim->oldest != NULL ? take_before(reclaim, lowest_seen(reclaim)) : NULL;
}

struct site_cache_entry *site_reclaim_collect_all(struct site_reclaim *reclaim)
{
    return take_before(reclaim, UINT64_MAX);
}

void site_reclaim_free(struct site_cache_entry *list)
{
    while (list != NULL) {
        struct site_cache_entry *next = list->retired.next;
        site_cache_release(list);
        list = next;
    }
}
