/* SPDX-License-Identifier: MIT
 *
 * The properties of the hash that its callers rely on. Every byte, the length and the seed count.
 * A changed bit changes about half of the result. Buckets fill evenly.
 */
#include "base/hash.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void depends_on_bytes_and_seed_and_not_on_the_address(void **state)
{
    (void)state;
    static const char text[] = "/a/path/of/some/length/index.html";

    for (size_t len = 0; len < sizeof(text); len++) {
        struct guard guard;
        struct span copy = guard_copy(&guard, span_of(text, len));
        assert_true(hash_bytes(copy, 1) == hash_bytes(span_of(text, len), 1));
        assert_true(hash_bytes(copy, 1) != hash_bytes(copy, 2));
        guard_done(&guard);
    }
}

static void tells_runs_of_zeros_apart_by_their_length(void **state)
{
    (void)state;
    static const char zeros[40];
    uint64_t seen[sizeof(zeros)];

    for (size_t len = 0; len < sizeof(zeros); len++) {
        seen[len] = hash_bytes(span_of(zeros, len), 0);
        for (size_t i = 0; i < len; i++)
            assert_true(seen[i] != seen[len]);
    }
}

static void changes_about_half_of_its_bits_with_any_bit_of_input(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 40; len++) {
        char text[40];
        memset(text, 'x', sizeof(text));
        uint64_t before = hash_bytes(span_of(text, len), 7);
        int changed = 0;
        for (size_t bit = 0; bit < len * 8; bit++) {
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            int now = __builtin_popcountll(before ^ hash_bytes(span_of(text, len), 7));
            text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
            assert_true(now >= 8);
            changed += now;
        }
        int mean_percent = changed * 100 / (int)(len * 8);
        assert_in_range(mean_percent, 2800, 3600); /* of 64 bits: 3200 is half */
    }
}

static void spreads_similar_paths_over_buckets_by_its_low_and_high_bits(void **state)
{
    (void)state;
    enum { BUCKETS = 256, PATHS = 256 * 100 };
    static unsigned low[BUCKETS], high[BUCKETS];

    for (unsigned i = 0; i < PATHS; i++) {
        char path[32];
        int len = snprintf(path, sizeof(path), "/static/img/%u.png", i);
        uint64_t hash = hash_bytes(span_of(path, (size_t)len), 0x5eed);
        low[hash % BUCKETS]++;
        high[hash >> 56]++;
    }
    /* 100 expected; six standard deviations either way. */
    for (unsigned i = 0; i < BUCKETS; i++) {
        assert_in_range(low[i], 40, 160);
        assert_in_range(high[i], 40, 160);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depends_on_bytes_and_seed_and_not_on_the_address),
        cmocka_unit_test(tells_runs_of_zeros_apart_by_their_length),
        cmocka_unit_test(changes_about_half_of_its_bits_with_any_bit_of_input),
        cmocka_unit_test(spreads_similar_paths_over_buckets_by_its_low_and_high_bits),
    };
    return cmocka_run_group_tests_name("base/hash", tests, NULL, NULL);
}
