/* SPDX-License-Identifier: MIT
 *
 * A bounded map from keys to reference-counted values, shared by the threads
 * of one process. It bounds bytes, entries and descriptors, and evicts by one
 * of two policies:
 *
 *   sieve  one queue, one visited bit, one hand. A hit takes no lock and no
 *          atomic read-modify-write: at most one plain store.
 *   lru    strict least-recently-used order: hash table with chains, doubly
 *          linked list, reader-writer lock. A hit on anything but the newest
 *          entry takes the lock for writing.
 *
 * Readers find entries without holding them. What they found stays valid until
 * their next site_cache_quiesce (quiescent-state-based reclamation): removed entries
 * are freed only when every reader has passed through one. A reader that wants
 * an entry for longer takes a reference with site_cache_hold.
 *
 * It knows nothing of files: what an entry is, and whether it is still fresh,
 * is for its owner to say.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdatomic.h>
#include <stdint.h>

enum site_cache_policy { SITE_CACHE_SIEVE, SITE_CACHE_LRU };

/* The part of a value that the cache uses; embed it as the first member. Fill
 * the first group before site_cache_insert, set `references` to 1 (the
 * creator's) and leave the rest zero. */
struct site_cache_entry {
    struct span key;      /* borrowed from the value itself */
    uint64_t hash;        /* of the key, as site_cache_hash gives it */
    size_t size_bytes;    /* everything the value costs, this struct included */
    uint32_t descriptors; /* open files it holds */
    void (*release)(struct site_cache_entry *entry); /* called once, with the last reference gone */

    _Atomic uint32_t references;
    _Atomic uint8_t visited;                  /* sieve: written by readers */
    _Atomic uint8_t ghost_pending;            /* sieve: site/ghost.h is to hear of its next use */
    bool resident;                            /* the rest: written under the cache's lock */
    _Atomic(struct site_cache_entry *) chain; /* next in the bucket; kept when taken out */
    struct site_cache_link {
        struct site_cache_entry *newer, *older;
    } queue[2]; /* among all, and among those that hold descriptors */
    struct site_cache_entry *retired_next;
    uint64_t retired_at; /* 0: was never taken out */
};

struct site_cache_limits {
    enum site_cache_policy policy;
    size_t bytes; /* 0: nothing is ever kept */
    size_t entries;
    uint32_t descriptors; /* an entry that holds more is refused; others make room for it */
};

struct site_cache;
struct site_cache_reader;

/* What an entry may cost at most: an eighth of the bytes. And what may be taken
 * out but not yet free before nothing more is let in: a quarter. */
#define SITE_CACHE_ENTRY_SHARE   8
#define SITE_CACHE_RETIRED_SHARE 4

/* Allocates the table (sized once, for `limits.entries`) and room for `readers`
 * readers. NULL without memory. */
struct site_cache *site_cache_new(struct site_cache_limits limits, unsigned readers);

/* Frees everything. No reader may be left in use; references that were taken
 * with site_cache_hold stay valid until their site_cache_release. Accepts NULL. */
void site_cache_free(struct site_cache *cache);

/* Gives reader `index` (0 .. readers-1), online, to the calling thread alone.
 * A thread that ends, or stops using its reader, leaves it offline. */
struct site_cache_reader *site_cache_reader(struct site_cache *cache, unsigned index);

/* The hash of a key in this cache (seeded at random, oCERT-2011-003). */
uint64_t site_cache_hash(const struct site_cache *cache, struct span key);

/* Finds the entry of `key`, or NULL. Valid until the reader's next site_cache_quiesce.
 * The reader is online. */
struct site_cache_entry *site_cache_find(struct site_cache_reader *reader, uint64_t hash,
                                         struct span key);

/* Declares that the reader's thread keeps nothing it found without a reference.
 * A load and a store; frees retired entries when there are any. Call it once for
 * each turn of a loop, and before waiting for long. */
void site_cache_quiesce(struct site_cache_reader *reader);

/* The reader is going to wait without bound (offline; it keeps nothing it found,
 * and holds up nothing), or is back (online). Either may be called twice. */
void site_cache_offline(struct site_cache_reader *reader);
void site_cache_online(struct site_cache_reader *reader);

/* Puts an entry in, taking a reference of the cache's own, in place of one with
 * the same key, evicting others until it fits. Returns false, and keeps nothing,
 * when it is larger than its share allows, or when too much that was taken out
 * is still in use: a counted, normal refusal, which leaves an entry with the same
 * key where it is. An entry goes in once in its life: one that is in, or was, is
 * refused. The caller keeps its own reference.
 *
 * Readers see the old entry or the new one, never neither. A replacement takes
 * the place of a newcomer in the queue, and the visited bit of what it replaces.
 * When only descriptors are short, only entries that hold some are evicted. */
bool site_cache_insert(struct site_cache_reader *reader, struct site_cache_entry *entry);

/* Whether an entry of this cost would be let in, as far as that depends on it alone;
 * site_cache_insert asks the same. The entry's first group is filled. */
enum site_cache_verdict {
    SITE_CACHE_FITS,
    SITE_CACHE_OFF,           /* nothing is ever kept */
    SITE_CACHE_TOO_LARGE,     /* past its share of the bytes */
    SITE_CACHE_TOO_MANY_FILES /* it holds more descriptors than all may */
};
enum site_cache_verdict site_cache_judge(const struct site_cache *cache,
                                         const struct site_cache_entry *entry);

/* Takes an entry out, if it is still the one in the cache. `entry` is valid:
 * found since the last quiesce, or held. */
void site_cache_remove(struct site_cache_reader *reader, struct site_cache_entry *entry);

/* One more reference, and one fewer (the last one releases). Any thread. Hold
 * only what is valid: found since the last quiesce, or already held. */
void site_cache_hold(struct site_cache_entry *entry);
void site_cache_release(struct site_cache_entry *entry);

/* As many times the bytes as there are, for which misses are estimated. */
enum site_cache_size {
    SITE_CACHE_HALF,
    SITE_CACHE_SAME,
    SITE_CACHE_DOUBLE,
    SITE_CACHE_QUADRUPLE,
    SITE_CACHE_SIZES
};

/* What there is now, and what happened since site_cache_new. */
struct site_cache_totals {
    size_t bytes, entries; /* resident */
    uint32_t descriptors;
    size_t retired_bytes; /* taken out, not yet free */
    uint64_t inserted;    /* replacements included */
    uint64_t evicted;     /* to make room; not what was replaced or removed */
    uint64_t refused;
    /* Estimates, of which the differences count: so many more or fewer than with SITE_CACHE_SAME
     * would have been missed. */
    uint64_t misses[SITE_CACHE_SIZES];
};
struct site_cache_totals site_cache_totals(struct site_cache *cache);
