/* SPDX-License-Identifier: MIT
 *
 * A bounded map from keys to reference-counted values, shared by the threads of one process. It
 * limits bytes, entries and descriptors, and evicts by one of two policies:
 *
 *   sieve  one queue, one visited bit for each entry, one hand. A hit is at most one plain
 *          store, without a lock or an atomic read-modify-write. There is one exception: a
 *          hit takes the lock when the ghost list (ghost.h) has to count it. That is so for
 *          sampled keys only, on the first hit after an insertion, and after one of the
 *          simulated caches considered the key for eviction.
 *   lru    strict least-recently-used order: a hash table with chains, a doubly linked list, a
 *          mutex. A hit takes the mutex to move its entry.
 *
 * A reader finds entries without holding them. An entry stays valid until the reader's next
 * site_cache_quiesce (quiescent-state-based reclamation): a removed entry is freed only when
 * every reader has passed one. To keep an entry longer, take a reference with site_cache_hold.
 *
 * The cache knows nothing of files. Its owner decides what an entry is and whether it is fresh.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum site_cache_policy { SITE_CACHE_SIEVE, SITE_CACHE_LRU };

/* Neighbours in a queue of eviction. */
struct site_cache_link {
    struct site_cache_entry *newer, *older;
};

struct site_cache_entry;

/* What entries of one kind have in common. */
struct site_cache_kind {
    void (*release)(struct site_cache_entry *entry); /* called once, after the last reference */
    /* Storage of an entry with descriptors, for its place among those. It does not move while the
     * entry is in the cache. NULL: no entry of this kind holds any. */
    struct site_cache_link *(*open_link)(struct site_cache_entry *entry);
};

/* The part of a value that the cache uses, embedded as the first member. There is one for each
 * cached file, so each byte counts. Before site_cache_insert, fill `hash` to `kind` with
 * site_cache_init, and leave the rest zero. */
struct site_cache_entry {
    uint64_t hash;                            /* of the key (site_cache_hash) */
    _Atomic(struct site_cache_entry *) chain; /* next in the bucket; kept after removal */
    const struct site_cache_kind *kind;
    uint16_t key_at, key_len; /* site_cache_key */
    uint32_t
        size_bytes; /* all memory of the value, with this struct; UINT32_MAX: as much or more */
    _Atomic uint32_t references;
    uint8_t descriptors;           /* open files it holds */
    _Atomic uint8_t visited;       /* sieve: written by readers */
    _Atomic uint8_t ghost_pending; /* sieve: the next hit is reported to the ghost list */
    enum __attribute__((packed)) site_cache_state {
        SITE_CACHE_NEW,
        SITE_CACHE_RESIDENT,
        SITE_CACHE_RETIRED /* it was in the cache */
    } state;               /* this and the rest: written under the cache's lock */
    union {
        struct site_cache_link queue; /* of a resident entry, among all */
        struct {
            struct site_cache_entry *next;
            uint64_t at; /* epoch of the removal */
        } retired;       /* of a retired one */
    };
};

_Static_assert(sizeof(struct site_cache_entry) == 56, "each byte is there for each cached file");

/* The key of an entry. It is in the value itself. */
static inline struct span site_cache_key(const struct site_cache_entry *entry)
{
    return span_of((const char *)entry + entry->key_at, entry->key_len);
}

/* Fills a zeroed entry, with one reference, the creator's. `key` is in the same value, at most
 * 64 KiB behind its begin, and shorter than 64 KiB. The caller sets size and descriptors. */
static inline void site_cache_init(struct site_cache_entry *entry,
                                   const struct site_cache_kind *kind, uint64_t hash,
                                   struct span key)
{
    const ptrdiff_t at = key.at - (const char *)entry;
    CHECK(at >= 0 && at <= UINT16_MAX && key.len <= UINT16_MAX);
    entry->hash = hash;
    entry->kind = kind;
    entry->key_at = (uint16_t)at;
    entry->key_len = (uint16_t)key.len;
    atomic_init(&entry->references, 1);
}

struct site_cache_limits {
    enum site_cache_policy policy;
    size_t bytes; /* 0: nothing is ever kept */
    size_t entries;
    uint32_t descriptors; /* open files of all entries together */
};

struct site_cache;
struct site_cache_reader;

/* An entry may use at most an eighth of the bytes. Removed entries that are not yet freed may use a
 * quarter. In a small cache they may use as much as the cache, up to SITE_CACHE_RETIRED_BYTES. A
 * thread that the kernel stops in the middle of a turn delays freeing for some milliseconds, and
 * the other threads remove so much meanwhile. While they use more, nothing is inserted. */
#define SITE_CACHE_ENTRY_SHARE   8
#define SITE_CACHE_RETIRED_SHARE 4
#define SITE_CACHE_RETIRED_BYTES ((size_t)4 << 20)

/* Allocates a table of fixed size for `limits.entries` and for `readers` readers. NULL without
 * memory. */
struct site_cache *site_cache_new(struct site_cache_limits limits, unsigned readers);

/* Frees everything. No reader is in use any more. References from site_cache_hold stay valid until
 * their site_cache_release. Accepts NULL. */
void site_cache_free(struct site_cache *cache);

/* Gives reader `index` (0 .. readers-1), online, to the calling thread alone. A thread that stops
 * using its reader leaves it offline. */
struct site_cache_reader *site_cache_reader(struct site_cache *cache, unsigned index);

/* The hash of a key in this cache (seeded at random, oCERT-2011-003). */
uint64_t site_cache_hash(const struct site_cache *cache, struct span key);

/* Finds the entry of `key`, or NULL. Valid until the reader's next site_cache_quiesce.
 * The reader is online. */
struct site_cache_entry *site_cache_find(struct site_cache_reader *reader, uint64_t hash,
                                         struct span key);

/* Declares that the reader's thread keeps no entry without a reference. This is a load and a store,
 * and frees removed entries when there are any. Call it once for each turn of a loop, and before
 * a long wait. */
void site_cache_quiesce(struct site_cache_reader *reader);

/* Offline, a reader keeps no entry and delays no reclamation: call it before a wait without bound.
 * Online, it can find again. Both are idempotent. */
void site_cache_offline(struct site_cache_reader *reader);
void site_cache_online(struct site_cache_reader *reader);

/* Inserts an entry, with a reference of the cache's own, and replaces one with the same key. Others
 * are evicted until it fits. Returns false, and keeps nothing, when the entry is larger than its
 * share, or when too many removed entries are still in use. That is a normal refusal, which is
 * counted, and an entry with the same key stays. An entry can be inserted once only: one that is
 * or was in the cache is refused. The caller keeps its own reference.
 *
 * Readers see the old entry or the new one at any time. A replacement enters the queue as the
 * newest, with the visited bit of the old entry. When only descriptors are short, only entries
 * that hold some are evicted. */
bool site_cache_insert(struct site_cache_reader *reader, struct site_cache_entry *entry);

/* Whether an entry of this cost can be inserted, as far as that depends on the entry alone.
 * site_cache_insert applies the same test. The first group of the entry is filled. */
enum site_cache_verdict {
    SITE_CACHE_FITS,
    SITE_CACHE_OFF,           /* the cache keeps nothing */
    SITE_CACHE_TOO_LARGE,     /* above its share of the bytes */
    SITE_CACHE_TOO_MANY_FILES /* it holds more descriptors than the limit */
};
enum site_cache_verdict site_cache_judge(const struct site_cache *cache,
                                         const struct site_cache_entry *entry);

/* Removes an entry if it is still in the cache. `entry` is valid: found since the last quiesce, or
 * held. */
void site_cache_remove(struct site_cache_reader *reader, struct site_cache_entry *entry);

/* Evicts entries that `is_idle` names. Each call asks for some entries, and the next call continues
 * behind them. */
void site_cache_sweep(struct site_cache_reader *reader,
                      bool (*is_idle)(const struct site_cache_entry *entry, uint64_t now_ns),
                      uint64_t now_ns);

/* Take and give up a reference; the last one calls `release`. Any thread. Hold only a valid entry:
 * found since the last quiesce, or already held. */
void site_cache_hold(struct site_cache_entry *entry);
void site_cache_release(struct site_cache_entry *entry);

/* The cache sizes for which misses are estimated, as multiples of the present one. */
enum site_cache_size {
    SITE_CACHE_HALF,
    SITE_CACHE_SAME,
    SITE_CACHE_DOUBLE,
    SITE_CACHE_QUADRUPLE,
    SITE_CACHE_SIZES
};

/* Present values, and totals since site_cache_new. */
struct site_cache_totals {
    size_t bytes, entries; /* resident */
    uint32_t descriptors;
    size_t limit_bytes;
    size_t retired_bytes; /* removed, not yet freed */
    uint64_t inserted;    /* replacements included */
    uint64_t evicted;     /* to make room, without replaced and removed entries */
    uint64_t refused;
    /* Estimates. Only differences to SITE_CACHE_SAME mean something: how many more or fewer lookups
     * would have missed. */
    uint64_t misses[SITE_CACHE_SIZES];
};
struct site_cache_totals site_cache_totals(struct site_cache *cache);

/* Whether site_cache_remove or site_cache_sweep has removed an entry since the last
 * site_cache_totals. It takes no lock. */
bool site_cache_has_shrunk(const struct site_cache *cache);
