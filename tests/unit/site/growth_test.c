/* SPDX-License-Identifier: MIT
 *
 * A large cache costs what a small one costs: the steps of a lookup and of an eviction are counted,
 * with a thousand and with a million entries. Times of the machine are not measured.
 */
#include "site/cache.h"
#include "site/eviction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

#ifdef SANITIZED
enum { MANY = 50 * 1000 }; /* a sanitizer multiplies time and memory */
#else
enum { MANY = 1000 * 1000 };
#endif
enum { FEW = 1000 };

struct value {
    struct site_cache_entry cache;
    uint32_t number; /* the key */
};

struct filled {
    struct site_cache *cache;
    struct site_cache_reader *reader;
    struct value *values; /* one more than there are in the cache */
    size_t count;
};

static void release_nothing(struct site_cache_entry *entry)
{
    (void)entry;
}

static const struct site_cache_kind kind = { release_nothing, NULL };

static void put(struct filled *f, size_t at)
{
    struct value *value = &f->values[at];
    value->number = (uint32_t)at;
    const struct span key = span_of((const char *)&value->number, sizeof(value->number));
    site_cache_init(&value->cache, &kind, site_cache_hash(f->cache, key), key);
    value->cache.size_bytes = 1;
    assert_true(site_cache_insert(f->reader, &value->cache));
    site_cache_release(&value->cache);
}

/* A cache that is full with `count` entries. */
static struct filled fill(enum site_cache_policy policy, size_t count)
{
    const struct site_cache_limits limits = { policy, 1000 * count, count, 0 };
    struct filled f = { .cache = site_cache_new(limits, 1), .count = count };
    f.values = calloc(count + 1, sizeof(*f.values));
    assert_non_null(f.cache);
    assert_non_null(f.values);
    f.reader = site_cache_reader(f.cache, 0);
    for (size_t i = 0; i < count; i++)
        put(&f, i);
    assert_int_equal(site_cache_totals(f.cache).entries, count);
    return f;
}

static void empty(struct filled *f)
{
    site_cache_offline(f->reader);
    site_cache_free(f->cache);
    free(f->values);
}

static struct site_cache_entry *find(struct filled *f, size_t at)
{
    const struct value *value = &f->values[at];
    return site_cache_find(f->reader, value->cache.hash, site_cache_key(&value->cache));
}

/* The entries that a lookup compares, on average over all entries: the entry itself, and those
 * before it in its chain. Each entry is behind as many as are in front of the others. */
static double mean_probes(const struct filled *f)
{
    size_t probes = 0;
    for (size_t i = 0; i < f->count; i++)
        for (const struct site_cache_entry *at = &f->values[i].cache; at != NULL;
             at = atomic_load_explicit(&at->chain, memory_order_relaxed))
            probes++;
    return (double)probes / (double)f->count;
}

static void a_lookup_compares_as_few_entries_in_a_large_cache(void **state)
{
    (void)state;
    static const size_t counts[] = { FEW, MANY };
    for (size_t i = 0; i < 2; i++) {
        struct filled f = fill(SITE_CACHE_SIEVE, counts[i]);
        for (size_t at = 0; at < counts[i]; at += counts[i] / 100)
            assert_ptr_equal(find(&f, at), &f.values[at].cache);
        /* Usually 1.25 to 1.5. The bucket array has at least an element for each entry. */
        assert_true(mean_probes(&f) < 1.75);
        empty(&f);
    }
}

static void an_eviction_passes_few_entries_also_if_all_were_used(void **state)
{
    (void)state;
    static const size_t counts[] = { FEW, MANY };
    for (size_t i = 0; i < 2; i++) {
        struct filled f = fill(SITE_CACHE_SIEVE, counts[i]);
        for (size_t at = 0; at < counts[i]; at++)
            assert_non_null(find(&f, at));
        put(&f, counts[i]);
        assert_int_equal(site_cache_totals(f.cache).entries, counts[i]);
        assert_int_equal(site_cache_totals(f.cache).evicted, 1);
        size_t passed = 0;
        for (size_t at = 0; at < counts[i]; at++)
            passed += atomic_load_explicit(&f.values[at].cache.visited, memory_order_relaxed) == 0;
        assert_in_range(passed, 1, SITE_EVICTION_STEPS);
        empty(&f);
    }
}

static void lru_evicts_the_oldest_entry_of_a_large_cache(void **state)
{
    (void)state;
    struct filled f = fill(SITE_CACHE_LRU, MANY);
    put(&f, MANY);
    assert_null(find(&f, 0));
    assert_non_null(find(&f, 1));
    assert_int_equal(site_cache_totals(f.cache).evicted, 1);
    empty(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lookup_compares_as_few_entries_in_a_large_cache),
        cmocka_unit_test(an_eviction_passes_few_entries_also_if_all_were_used),
        cmocka_unit_test(lru_evicts_the_oldest_entry_of_a_large_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
