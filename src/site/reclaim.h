/* SPDX-License-Identifier: MIT
 *
 * When may an entry be freed that other threads may be reading just now? When
 * every thread that could have found it has since declared that it keeps nothing
 * (quiescent-state-based reclamation). Readers pay a load and a store for each
 * declaration and nothing for each find. Private to the cache.
 *
 * Why that is enough. Writers take an entry out of its chain, stamp it with the
 * epoch, and then advance the epoch (release). A reader that loads the new epoch
 * (acquire) sees the chain without the entry in every later find; what it may
 * still reach was stamped at or after the epoch it stores in its slot. The store
 * is a release, so all it read before is done when a writer sees it (acquire).
 * An entry whose stamp is below the slot of every online reader is out of reach.
 *
 * A reader that comes online has no earlier find to protect, but a writer that
 * saw it offline may be freeing at this moment. Both therefore go through the
 * slot with a read-modify-write: one of the two is first, and either the writer
 * learns of the reader or the reader sees all that the writer took out. (Two
 * seq_cst fences would do as well, but ThreadSanitizer cannot follow fences.)
 */
#pragma once

#include "base/check.h"
#include "site/cache.h"

#define SITE_RECLAIM_OFFLINE 0 /* epochs begin at 1 */

struct site_cache_reader {
    /* Written by the reader's thread at each quiesce, read by whoever collects. */
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
    unsigned reader_count; /* in use so far: offline ones cost a look, too */
    unsigned blocker;      /* the one that held up the last collection */
};

/* Borrows `readers` for life; none is in use yet. */
void site_reclaim_init(struct site_reclaim *reclaim, struct site_cache_reader *readers);

/* Readers below `count` may be in use from now on. Under the lock. */
void site_reclaim_admit(struct site_reclaim *reclaim, unsigned count, struct site_cache *cache);

/* Takes over the cache's reference to an entry that is no longer in any chain.
 * Under the lock. */
void site_reclaim_retire(struct site_reclaim *reclaim, struct site_cache_entry *entry);

/* Gives the retired entries that no reader can reach any more, linked by
 * retired_next. Under the lock. */
MUST_USE struct site_cache_entry *site_reclaim_collect(struct site_reclaim *reclaim);

/* Gives all of them, when there are no readers left. */
MUST_USE struct site_cache_entry *site_reclaim_collect_all(struct site_reclaim *reclaim);

/* Lets go of a list that was collected. Without the lock: releasing runs code of
 * the entry's owner. */
void site_reclaim_free(struct site_cache_entry *list);

/* The reader keeps nothing. Returns whether there may be something to collect. */
static inline bool site_reclaim_quiesce(struct site_reclaim *reclaim,
                                        struct site_cache_reader *reader)
{
    const uint64_t epoch = atomic_load_explicit(&reclaim->epoch, memory_order_acquire);
    atomic_store_explicit(&reader->seen, epoch, memory_order_release);
    return atomic_load_explicit(&reclaim->waiting, memory_order_relaxed);
}
