/* SPDX-License-Identifier: MIT
 *
 * The table, its limits and its lock. Entries stand in chains of a bucket array of fixed size.
 * Writers change chains under the lock, and readers walk them at any time. eviction.h decides
 * which entry leaves, and reclaim.h when its memory is freed.
 */
#include "site/cache.h"

#include "base/hash.h"
#include "site/eviction.h"
#include "site/ghost.h"
#include "site/reclaim.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

typedef _Atomic(struct site_cache_entry *) chain_link;

struct site_cache {
    /* Written by site_cache_new, then constant. */
    struct site_cache_limits limits;
    chain_link *buckets;
    size_t bucket_mask;
    uint64_t seed;
    struct site_cache_reader *readers;
    unsigned reader_count;

    /* With sieve, no reader takes it to find an entry. */
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    struct site_eviction eviction;
    struct site_cache_totals totals;
    struct site_ghost *ghost;
    _Atomic bool has_shrunk; /* set with the lock */

    struct site_reclaim reclaim;
};

static size_t power_of_two_from(size_t least)
{
    size_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

static uint64_t random_seed(const void *anything)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
        return seed;
    /* Only right after boot. A client does not know the address of the heap either. */
    return (uint64_t)(uintptr_t)anything * UINT64_C(0x9e3779b97f4a7c15);
}

/* The lock is held for less time than a thread needs to sleep and wake, so a thread that finds it
 * taken first spins. */
static int init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error != 0)
        return error;
    error = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    if (error == 0)
        error = pthread_mutex_init(lock, &attributes);
    (void)pthread_mutexattr_destroy(&attributes); /* cannot fail on Linux */
    return error;
}

/* A simulated cache has to see the next use of this key. */
static void on_ghost_forget(void *cache_, uint64_t hash)
{
    struct site_cache *cache = cache_;
    struct site_cache_entry *entry =
        atomic_load_explicit(&cache->buckets[hash & cache->bucket_mask], memory_order_relaxed);
    for (; entry != NULL; entry = atomic_load_explicit(&entry->chain, memory_order_relaxed))
        if (entry->hash == hash)
            atomic_store_explicit(&entry->ghost_pending, 1, memory_order_relaxed);
}

struct site_cache *site_cache_new(struct site_cache_limits limits, unsigned readers)
{
    if (limits.entries > SIZE_MAX / sizeof(chain_link) / 2)
        return NULL;
    const size_t bucket_count = power_of_two_from(limits.entries);
    struct site_cache *cache = aligned_alloc(CACHE_LINE, sizeof(*cache));
    if (cache == NULL)
        return NULL;
    *cache = (struct site_cache){
        .limits = limits,
        .buckets = calloc(bucket_count, sizeof(chain_link)),
        .bucket_mask = bucket_count - 1,
        .seed = random_seed(cache),
        .readers = aligned_alloc(CACHE_LINE, (readers > 0 ? readers : 1) * sizeof(*cache->readers)),
        .reader_count = readers,
        .eviction.policy = limits.policy,
    };
    if (cache->buckets == NULL || cache->readers == NULL || init_lock(&cache->lock) != 0) {
        free(cache->buckets);
        free(cache->readers);
        free(cache);
        return NULL;
    }
    site_reclaim_init(&cache->reclaim, cache->readers);
    cache->ghost = site_ghost_new(limits, on_ghost_forget, cache);
    return cache;
}

uint64_t site_cache_hash(const struct site_cache *cache, struct span key)
{
    return hash_bytes(key, cache->seed);
}

static void lock_cache(struct site_cache *cache)
{
    CHECK(pthread_mutex_lock(&cache->lock) == 0);
}

static void unlock_cache(struct site_cache *cache)
{
    CHECK(pthread_mutex_unlock(&cache->lock) == 0);
}

struct site_cache_reader *site_cache_reader(struct site_cache *cache, unsigned index)
{
    CHECK(index < cache->reader_count);
    lock_cache(cache);
    site_reclaim_admit(&cache->reclaim, index + 1, cache);
    unlock_cache(cache);
    site_cache_online(&cache->readers[index]);
    return &cache->readers[index];
}

/* Finding */

static struct site_cache_entry *walk_chain(const struct site_cache *cache, uint64_t hash,
                                           struct span key)
{
    /* Acquire: an entry's fields were written before it was linked. */
    struct site_cache_entry *entry =
        atomic_load_explicit(&cache->buckets[hash & cache->bucket_mask], memory_order_acquire);
    while (entry != NULL && (entry->hash != hash || !span_equal(site_cache_key(entry), key)))
        entry = atomic_load_explicit(&entry->chain, memory_order_acquire);
    return entry;
}

/* Under the lock. */
static void report_to_ghost(struct site_cache *cache, struct site_cache_entry *entry)
{
    uint8_t ghost_pending = 0;
    if (site_ghost_watches(cache->ghost, entry))
        ghost_pending = !site_ghost_lookup(cache->ghost, entry, cache->totals.misses);
    atomic_store_explicit(&entry->ghost_pending, ghost_pending, memory_order_relaxed);
}

/* Another thread may have removed the entry meanwhile, which does no harm here. */
static __attribute__((noinline)) void report_hit_to_ghost(struct site_cache *cache,
                                                          struct site_cache_entry *entry)
{
    lock_cache(cache);
    if (atomic_load_explicit(&entry->ghost_pending, memory_order_relaxed))
        report_to_ghost(cache, entry);
    unlock_cache(cache);
}

/* The entry is found without the lock, so it can be removed before the lock is held. It cannot be
 * freed, because the reader has not quiesced. */
static struct site_cache_entry *find_lru(struct site_cache *cache, uint64_t hash, struct span key)
{
    struct site_cache_entry *entry = walk_chain(cache, hash, key);
    if (entry == NULL)
        return NULL;
    lock_cache(cache);
    if (entry != cache->eviction.queue[SITE_EVICTION_ALL].newest) {
        if (entry->state == SITE_CACHE_RESIDENT)
            site_eviction_touch(&cache->eviction, entry);
        report_to_ghost(cache, entry);
    }
    unlock_cache(cache);
    return entry;
}

struct site_cache_entry *site_cache_find(struct site_cache_reader *reader, uint64_t hash,
                                         struct span key)
{
    struct site_cache *cache = reader->cache;
    CHECK(atomic_load_explicit(&reader->seen, memory_order_relaxed) != SITE_RECLAIM_OFFLINE);
    if (cache->limits.policy == SITE_CACHE_LRU)
        return find_lru(cache, hash, key);
    struct site_cache_entry *entry = walk_chain(cache, hash, key);
    /* No store if the bit is set: the cache line stays shared between cores. */
    if (entry != NULL && atomic_load_explicit(&entry->visited, memory_order_relaxed) == 0)
        atomic_store_explicit(&entry->visited, 1, memory_order_relaxed);
    if (entry != NULL &&
        __builtin_expect(atomic_load_explicit(&entry->ghost_pending, memory_order_relaxed), 0))
        report_hit_to_ghost(cache, entry);
    return entry;
}

/* Changing; under the lock */

/* The link that points to `entry`. */
static chain_link *link_to(struct site_cache *cache, const struct site_cache_entry *entry)
{
    chain_link *link = &cache->buckets[entry->hash & cache->bucket_mask];
    for (;;) {
        struct site_cache_entry *at = atomic_load_explicit(link, memory_order_relaxed);
        if (at == entry)
            return link;
        CHECK(at != NULL);
        link = &at->chain;
    }
}

/* Removes a resident entry and makes `link` point to `successor`. The chain of the entry itself
 * stays, because readers may be walking through it. */
static void take_out(struct site_cache *cache, struct site_cache_entry *entry, chain_link *link,
                     struct site_cache_entry *successor)
{
    atomic_store_explicit(link, successor, memory_order_release);
    site_eviction_leave(&cache->eviction, entry);
    entry->state = SITE_CACHE_RETIRED;
    cache->totals.bytes -= entry->size_bytes;
    cache->totals.entries--;
    cache->totals.descriptors -= entry->descriptors;
    site_reclaim_retire(&cache->reclaim, entry);
}

static void evict_entry(struct site_cache *cache, struct site_cache_entry *entry)
{
    take_out(cache, entry, link_to(cache, entry),
             atomic_load_explicit(&entry->chain, memory_order_relaxed));
}

/* The bytes that removed entries may use. */
static size_t retired_most(const struct site_cache_limits *limits)
{
    const size_t share = limits->bytes / SITE_CACHE_RETIRED_SHARE;
    const size_t small = limits->bytes < SITE_CACHE_RETIRED_BYTES ? limits->bytes
                                                                  : SITE_CACHE_RETIRED_BYTES;
    return share > small ? share : small;
}

/* Evicts until `entry` fits. `*old`, which it will replace, counts as removed, and becomes NULL
 * when it is evicted itself. False when removed entries use too much memory. */
static bool evict_for(struct site_cache *cache, const struct site_cache_entry *entry,
                      struct site_cache_entry **old)
{
    const struct site_cache_limits *limits = &cache->limits;
    const struct site_cache_totals *totals = &cache->totals;
    while (cache->reclaim.bytes <= retired_most(limits)) {
        const size_t old_bytes = *old != NULL ? (*old)->size_bytes : 0;
        const size_t old_entries = *old != NULL ? 1 : 0;
        const uint32_t old_descriptors = *old != NULL ? (*old)->descriptors : 0;
        enum site_eviction_queue which = SITE_EVICTION_ALL;
        if (totals->bytes - old_bytes <= limits->bytes - entry->size_bytes &&
            totals->entries - old_entries < limits->entries) {
            if (totals->descriptors - old_descriptors <= limits->descriptors - entry->descriptors)
                return true;
            which = SITE_EVICTION_OPEN;
        }
        struct site_cache_entry *victim = site_eviction_victim(&cache->eviction, which);
        CHECK(victim != NULL);
        if (victim == *old)
            *old = NULL;
        evict_entry(cache, victim);
        cache->totals.evicted++;
    }
    return false;
}

enum site_cache_verdict site_cache_judge(const struct site_cache *cache,
                                         const struct site_cache_entry *entry)
{
    const struct site_cache_limits *limits = &cache->limits;
    if (limits->bytes == 0 || limits->entries == 0)
        return SITE_CACHE_OFF;
    if (entry->size_bytes > limits->bytes / SITE_CACHE_ENTRY_SHARE ||
        entry->size_bytes == UINT32_MAX)
        return SITE_CACHE_TOO_LARGE;
    return entry->descriptors > limits->descriptors ? SITE_CACHE_TOO_MANY_FILES : SITE_CACHE_FITS;
}

static bool admit_entry(struct site_cache *cache, struct site_cache_entry *entry)
{
    if (site_cache_judge(cache, entry) != SITE_CACHE_FITS)
        return false;
    if (entry->state != SITE_CACHE_NEW)
        return false;
    struct site_cache_entry *old = walk_chain(cache, entry->hash, site_cache_key(entry));
    if (!evict_for(cache, entry, &old))
        return false;

    site_cache_hold(entry);
    entry->state = SITE_CACHE_RESIDENT;
    chain_link *bucket = &cache->buckets[entry->hash & cache->bucket_mask];
    if (old != NULL) {
        atomic_store_explicit(&entry->chain,
                              atomic_load_explicit(&old->chain, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(&entry->visited,
                              atomic_load_explicit(&old->visited, memory_order_relaxed),
                              memory_order_relaxed);
        take_out(cache, old, link_to(cache, old), entry);
    } else {
        atomic_store_explicit(&entry->chain, atomic_load_explicit(bucket, memory_order_relaxed),
                              memory_order_relaxed);
        atomic_store_explicit(bucket, entry, memory_order_release);
    }
    site_eviction_enter(&cache->eviction, entry);
    cache->totals.bytes += entry->size_bytes;
    cache->totals.entries++;
    cache->totals.descriptors += entry->descriptors;
    cache->totals.inserted++;
    return true;
}

bool site_cache_insert(struct site_cache_reader *reader, struct site_cache_entry *entry)
{
    struct site_cache *cache = reader->cache;
    CHECK(atomic_load_explicit(&entry->references, memory_order_relaxed) > 0);
    lock_cache(cache);
    struct site_cache_entry *collected = site_reclaim_collect(&cache->reclaim);
    const bool admitted = admit_entry(cache, entry);
    if (!admitted)
        cache->totals.refused++;
    report_to_ghost(cache, entry);
    unlock_cache(cache);
    site_reclaim_free(collected);
    return admitted;
}

void site_cache_remove(struct site_cache_reader *reader, struct site_cache_entry *entry)
{
    struct site_cache *cache = reader->cache;
    lock_cache(cache);
    struct site_cache_entry *collected = site_reclaim_collect(&cache->reclaim);
    if (entry->state == SITE_CACHE_RESIDENT) {
        evict_entry(cache, entry);
        atomic_store_explicit(&cache->has_shrunk, true, memory_order_relaxed);
    }
    unlock_cache(cache);
    site_reclaim_free(collected);
}

enum { SWEEP_STEPS = 256 };

void site_cache_sweep(struct site_cache_reader *reader,
                      bool (*is_idle)(const struct site_cache_entry *entry, uint64_t now_ns),
                      uint64_t now_ns)
{
    struct site_cache *cache = reader->cache;
    lock_cache(cache);
    struct site_cache_entry *collected = site_reclaim_collect(&cache->reclaim);
    const uint64_t before = cache->totals.evicted;
    const size_t count = cache->totals.entries;
    for (size_t left = count < SWEEP_STEPS ? count : SWEEP_STEPS;
         left > 0 && cache->reclaim.bytes <= retired_most(&cache->limits) / 2; left--) {
        struct site_cache_entry *entry = site_eviction_sweep(&cache->eviction);
        if (!is_idle(entry, now_ns))
            continue;
        evict_entry(cache, entry);
        cache->totals.evicted++;
    }
    if (cache->totals.evicted > before)
        atomic_store_explicit(&cache->has_shrunk, true, memory_order_relaxed);
    unlock_cache(cache);
    site_reclaim_free(collected);
}

/* Freeing */

/* Another thread that holds the lock collects instead, or the next turn does. */
static void try_to_collect(struct site_cache *cache)
{
    if (pthread_mutex_trylock(&cache->lock) != 0)
        return;
    struct site_cache_entry *collected = site_reclaim_collect(&cache->reclaim);
    unlock_cache(cache);
    site_reclaim_free(collected);
}

void site_cache_quiesce(struct site_cache_reader *reader)
{
    if (site_reclaim_quiesce(&reader->cache->reclaim, reader))
        try_to_collect(reader->cache);
}

void site_cache_offline(struct site_cache_reader *reader)
{
    struct site_cache *cache = reader->cache;
    atomic_store_explicit(&reader->seen, SITE_RECLAIM_OFFLINE, memory_order_release);
    if (atomic_load_explicit(&cache->reclaim.waiting, memory_order_relaxed))
        try_to_collect(cache);
}

void site_cache_online(struct site_cache_reader *reader)
{
    const uint64_t epoch =
        atomic_load_explicit(&reader->cache->reclaim.epoch, memory_order_acquire);
    (void)atomic_exchange_explicit(&reader->seen, epoch, memory_order_acq_rel); /* see reclaim.h */
}

void site_cache_hold(struct site_cache_entry *entry)
{
    (void)atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
}

void site_cache_release(struct site_cache_entry *entry)
{
    const uint32_t before = atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        entry->kind->release(entry);
}

void site_cache_free(struct site_cache *cache)
{
    if (cache == NULL)
        return;
    struct site_cache_entry *entry;
    while ((entry = cache->eviction.queue[SITE_EVICTION_ALL].newest) != NULL)
        evict_entry(cache, entry);
    site_reclaim_free(site_reclaim_collect_all(&cache->reclaim));
    CHECK(pthread_mutex_destroy(&cache->lock) == 0);
    site_ghost_free(cache->ghost);
    free(cache->buckets);
    free(cache->readers);
    free(cache);
}

struct site_cache_totals site_cache_totals(struct site_cache *cache)
{
    lock_cache(cache);
    struct site_cache_totals totals = cache->totals;
    totals.limit_bytes = cache->limits.bytes;
    totals.retired_bytes = cache->reclaim.bytes;
    atomic_store_explicit(&cache->has_shrunk, false, memory_order_relaxed);
    unlock_cache(cache);
    return totals;
}

bool site_cache_has_shrunk(const struct site_cache *cache)
{
    return atomic_load_explicit(&cache->has_shrunk, memory_order_relaxed);
}
