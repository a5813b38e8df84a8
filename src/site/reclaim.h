/* SPDX-License-Identifier: MIT
 *
 * Decides when a removed entry can be freed, although threads read without a lock. That is when
 * every thread that could have found it has since declared that it keeps nothing (quiescent-state-
 * based reclamation). A reader pays a load and a store for each declaration, and nothing for a
 * find. Private to the cache.
 *
 * Why this is enough. A writer removes an entry from its chain, stamps it with the epoch, and then
 * advances the epoch (release). A reader that loads the new epoch (acquire) sees the chain without
 * the entry in every later find. Entries that it can still reach were stamped at or after the epoch
 * that it stores in its slot. The store is a release, so all earlier reads are done when a writer
 * sees it (acquire). An entry whose stamp is below the slot of every online reader is therefore out
 * of reach.
 *
 * A reader that comes online has no earlier find to protect. But a writer that saw it offline may
 * be freeing at this moment. Both therefore access the slot with a read-modify-write, and one of
 * them is first: either the writer sees the reader, or the reader sees everything that the writer
 * removed. (Two seq_cst fences would do as well, but ThreadSanitizer cannot follow fences.) */
#pragma once

#include "base/check.h"
#include "site/cache.h"

#define SITE_RECLAIM_OFFLINE 0 /* epochs begin at 1 */

struct site_cache_reader {
    /* Written by the reader's thread at each quiesce, read by threads that collect. */
    _Alignas(CACHE_LINE) _Atomic uint64_t seen;
    struct site_cache *cache;
};

struct site_reclaim {
    /* Read by every reader at each quiesce; written by writers under the lock. */
    _Alignas(CACHE_LINE) _Atomic uint64_t epoch;
    _Atomic bool waiting; /* there are retired entries */

    /* Under the cache's lock. The list is ordered by stamp. */
    _Alignas(CACHE_LINE) struct site_cache_entry *oldest;
    struct site_cache_entry *newest;
    size_t bytes;
    struct site_cache_reader *readers;
    unsigned reader_count; /* used so far; a collection reads the slot of each */
    unsigned blocker;      /* the reader that delayed the last collection */
};

/* Borrows `readers` for its lifetime. None is in use yet. */
void site_reclaim_init(struct site_reclaim *reclaim, struct site_cache_reader *readers);

/* Allows readers below `count` from now on. Under the lock. */
void site_reclaim_admit(struct site_reclaim *reclaim, unsigned count, struct site_cache *cache);

/* Takes the cache's reference to an entry that is in no chain any more. Under the lock. */
void site_reclaim_retire(struct site_reclaim *reclaim, struct site_cache_entry *entry);

/* Gives the retired entries that no reader can reach, linked by retired.next. Under the lock. */
MUST_USE struct site_cache_entry *site_reclaim_collect(struct site_reclaim *reclaim);

/* Gives all retired entries. No reader is in use any more. */
MUST_USE struct site_cache_entry *site_reclaim_collect_all(struct site_reclaim *reclaim);

/* Releases a collected list. Without the lock, because release runs code of the owner. */
void site_reclaim_free(struct site_cache_entry *list);

/* Declares that the reader keeps nothing. Returns whether entries may wait for collection. */
static inline bool site_reclaim_quiesce(struct site_reclaim *reclaim,
                                        struct site_cache_reader *reader)
{
    const uint64_t epoch = atomic_load_explicit(&reclaim->epoch, memory_order_acquire);
    atomic_store_explicit(&reader->seen, epoch, memory_order_release);
    return atomic_load_explicit(&reclaim->waiting, memory_order_relaxed);
}
