/* SPDX-License-Identifier: MIT
 *
 * Estimates for other cache sizes equal what caches of these sizes do. The same requests, with a
 * Zipf distribution, go through each of them.
 */
#include "site/cache.h"
#include "support/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 20000, LOOKUPS = 250000, WARM = 80000 };

static uint32_t trace[LOOKUPS];

struct value {
    struct site_cache_entry cache;
    uint32_t key;
};

static void release(struct site_cache_entry *entry)
{
    free(entry);
}

static void make_trace(struct random_source *random, double skew)
{
    static double sums[KEYS];
    double sum = 0;
    for (unsigned i = 0; i < KEYS; i++)
        sums[i] = sum += 1 / pow(i + 1, skew);
    for (unsigned n = 0; n < LOOKUPS; n++) {
        double wanted = sum * ((double)(random_u64(random) >> 11) / (double)(UINT64_C(1) << 53));
        unsigned low = 0, high = KEYS - 1;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (sums[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        trace[n] = low;
    }
}

static uint32_t size_of(uint32_t key)
{
    return 500 + (key * UINT32_C(2654435761) >> 20); /* 500 to 4595 */
}

static const struct site_cache_kind kind = { release, NULL };

static void put(struct site_cache *cache, struct site_cache_reader *reader, uint32_t key)
{
    struct value *value = calloc(1, sizeof(*value));
    assert_non_null(value);
    value->key = key;
    const struct span name = span_of((const char *)&value->key, sizeof(value->key));
    site_cache_init(&value->cache, &kind, site_cache_hash(cache, name), name);
    value->cache.size_bytes = size_of(key);
    (void)site_cache_insert(reader, &value->cache);
    site_cache_release(&value->cache);
}

struct outcome {
    double ratio, estimate[SITE_CACHE_SIZES];
    uint64_t evicted, misses[SITE_CACHE_SIZES];
};

/* The hit ratio of a cache of this size after warming up, and its estimates for other sizes. */
static struct outcome play(enum site_cache_policy policy, size_t bytes)
{
    const struct site_cache_limits limits = { policy, bytes, 65536, 10 };
    struct site_cache *cache = site_cache_new(limits, 1);
    assert_non_null(cache);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    struct site_cache_totals before = { 0 };
    uint64_t hits = 0;
    for (unsigned n = 0; n < LOOKUPS; n++) {
        if (n == WARM)
            before = site_cache_totals(cache);
        struct span key = span_of((const char *)&trace[n], sizeof(trace[n]));
        if (!site_cache_find(reader, site_cache_hash(cache, key), key))
            put(cache, reader, trace[n]);
        else
            hits += n >= WARM;
        site_cache_quiesce(reader);
    }
    struct site_cache_totals after = site_cache_totals(cache);
    struct outcome outcome = { .ratio = (double)hits / (LOOKUPS - WARM), .evicted = after.evicted };
    uint64_t same = after.misses[SITE_CACHE_SAME] - before.misses[SITE_CACHE_SAME];
    for (unsigned i = 0; i < SITE_CACHE_SIZES; i++) {
        outcome.misses[i] = after.misses[i];
        double more = (double)(after.misses[i] - before.misses[i]) - (double)same;
        double estimate = outcome.ratio - more / (LOOKUPS - WARM);
        outcome.estimate[i] = estimate < 1 ? estimate : 1;
    }
    site_cache_free(cache);
    return outcome;
}

static void assert_estimates(enum site_cache_policy policy, size_t bytes)
{
    struct outcome estimated = play(policy, bytes);
    for (unsigned i = 0; i < SITE_CACHE_SIZES; i++) {
        double measured = play(policy, (bytes / 2) << i).ratio;
        print_message("policy %d, %zu bytes x %g: estimated %.3f, measured %.3f\n", (int)policy,
                      bytes, 0.5 * (1 << i), estimated.estimate[i], measured);
        if (fabs(estimated.estimate[i] - measured) > 0.03)
            fail_msg("%.3f is not near %.3f", estimated.estimate[i], measured);
    }
}

static void estimates_are_within_three_points_of_what_other_sizes_do(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* one thread has no races, and the sanitizer takes a minute */
#endif
    static const double skews[] = { 0.7, 1.1 };
    struct random_source random = random_start();
    for (unsigned s = 0; s < sizeof(skews) / sizeof(skews[0]); s++) {
        make_trace(&random, skews[s]);
        for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++)
            for (size_t bytes = 1 << 20; bytes <= 1 << 24; bytes *= 16)
                assert_estimates((enum site_cache_policy)policy, bytes);
    }
}

static void a_cache_that_holds_everything_gains_nothing(void **state)
{
    (void)state;
    struct random_source random = random_start();
    make_trace(&random, 0.9);
    struct outcome estimated = play(SITE_CACHE_SIEVE, (size_t)1 << 28);
    assert_int_equal(estimated.evicted, 0);
    assert_int_equal(estimated.misses[SITE_CACHE_SAME], estimated.misses[SITE_CACHE_QUADRUPLE]);
    assert_int_equal(estimated.misses[SITE_CACHE_SAME], estimated.misses[SITE_CACHE_HALF]);
}

static void a_cache_that_keeps_nothing_estimates_nothing(void **state)
{
    (void)state;
    memset(trace, 0, sizeof(trace));
    struct outcome estimated = play(SITE_CACHE_SIEVE, 0);
    assert_int_equal(estimated.misses[SITE_CACHE_SAME], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_within_three_points_of_what_other_sizes_do),
        cmocka_unit_test(a_cache_that_holds_everything_gains_nothing),
        cmocka_unit_test(a_cache_that_keeps_nothing_estimates_nothing),
    };
    return cmocka_run_group_tests_name("ghost", tests, NULL, NULL);
}
