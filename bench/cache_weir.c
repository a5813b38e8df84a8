/* SPDX-License-Identifier: MIT
 *
 * weir's own cache as a contestant. A thread quiesces after each operation, like an event
 * loop that is woken for one request at a time. This is the most expensive case: a busy loop
 * quiesces less often.
 */
#include "cache.h"

#include "site/cache.h"

#include <stdlib.h>

struct value {
    struct site_cache_entry entry; /* the first member: it is released by this pointer */
    char name[NAME_BYTES];
    char body[BODY_BYTES];
};

struct weir {
    struct site_cache *cache;
    struct site_cache_reader *readers[WORKERS_MAX];
};

static struct weir *make(enum site_cache_policy policy, size_t capacity, unsigned workers)
{
    struct weir *weir = allocate(sizeof(*weir));
    *weir = (struct weir){ .cache = site_cache_new(
                               (struct site_cache_limits){
                                   .policy = policy,
                                   .bytes = capacity * sizeof(struct value),
                                   .entries = capacity,
                               },
                               workers) };
    CHECK(weir->cache != NULL);
    return weir;
}

static void *make_sieve(size_t capacity, unsigned workers)
{
    return make(SITE_CACHE_SIEVE, capacity, workers);
}

static void *make_lru(size_t capacity, unsigned workers)
{
    return make(SITE_CACHE_LRU, capacity, workers);
}

static void enter(void *cache, unsigned worker)
{
    struct weir *weir = cache;
    weir->readers[worker] = site_cache_reader(weir->cache, worker);
}

static void leave(void *cache, unsigned worker)
{
    struct weir *weir = cache;
    site_cache_offline(weir->readers[worker]);
}

static void release(struct site_cache_entry *entry)
{
    free((void *)entry);
}

static const struct site_cache_kind kind = { release, NULL };

static void miss(struct site_cache_reader *reader, uint64_t hash, struct span name)
{
    struct value *value = allocate(sizeof(*value));
    bring_in(value->name, value->body, name);
    value->entry = (struct site_cache_entry){ .size_bytes = sizeof(*value) };
    site_cache_init(&value->entry, &kind, hash, span_of(value->name, name.len));
    (void)site_cache_insert(reader, &value->entry);
    site_cache_release(&value->entry);
}

static bool ask(void *cache, unsigned worker, struct span name)
{
    struct weir *weir = cache;
    struct site_cache_reader *reader = weir->readers[worker];
    const uint64_t hash = site_cache_hash(weir->cache, name);
    struct site_cache_entry *entry = site_cache_find(reader, hash, name);
    if (entry != NULL)
        look_at(((const struct value *)(void *)entry)->body);
    else
        miss(reader, hash, name);
    site_cache_quiesce(reader);
    return entry != NULL;
}

static uint64_t refused(void *cache)
{
    const struct weir *weir = cache;
    return site_cache_totals(weir->cache).refused;
}

static void end(void *cache)
{
    struct weir *weir = cache;
    site_cache_free(weir->cache);
    free(weir);
}

const struct contestant contestant_sieve = {
    .name = "sieve",
    .make = make_sieve,
    .enter = enter,
    .ask = ask,
    .leave = leave,
    .refused = refused,
    .end = end,
};

const struct contestant contestant_lru = {
    .name = "lru",
    .make = make_lru,
    .enter = enter,
    .ask = ask,
    .leave = leave,
    .refused = refused,
    .end = end,
};
