/* SPDX-License-Identifier: MIT
 *
 * Every value lies in its bucket, buckets are in order without gaps, and a
 * quantile is within the promised error of the one that sorting finds.
 */
#include "base/histogram.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 300 * 1000, QUANTILE_ROUNDS = 300, VALUES_MAX = 2000 };

/* Of every size alike. */
static uint64_t some_value(struct random_source *random)
{
    return random_u64(random) >> random_below(random, 64);
}

static unsigned some_bits(struct random_source *random)
{
    return 1 + (unsigned)random_below(random, HISTOGRAM_BITS_MAX);
}

static void every_value_lies_in_its_bucket(void **state)
{
    (void)state;
    struct random_source random = random_start();
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t value = some_value(&random);
        unsigned bits = some_bits(&random);
        size_t index = histogram_index(value, bits);
        uint64_t low = histogram_low(index, bits), high = histogram_high(index, bits);
        uint64_t middle = histogram_middle(index, bits);
        assert_true(low <= value && value <= high);
        assert_true(low <= middle && middle <= high);
        uint64_t off = value > middle ? value - middle : middle - value;
        assert_true((double)off <= (double)value / (double)(UINT64_C(2) << bits));
        assert_true(high - low == 0 || high - low < low >> bits);
    }
}

static void buckets_follow_each_other_without_gaps(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= HISTOGRAM_BITS_MAX; bits++) {
        size_t last = histogram_index(UINT64_MAX, bits);
        assert_int_equal(histogram_low(0, bits), 0);
        for (size_t i = 0; i < last; i++) {
            uint64_t high = histogram_high(i, bits);
            assert_true(histogram_low(i + 1, bits) == high + 1);
            assert_int_equal(histogram_index(high, bits), i);
            assert_int_equal(histogram_index(high + 1, bits), i + 1);
        }
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void quantiles_are_within_one_percent_of_the_sorted_value(void **state)
{
    (void)state;
    enum { BITS = 6 };
    struct random_source random = random_start();
    size_t buckets = histogram_buckets(UINT64_MAX, BITS);
    uint64_t *counts = calloc(buckets, sizeof(*counts));
    uint64_t values[VALUES_MAX];
    assert_non_null(counts);
    for (unsigned round = 0; round < QUANTILE_ROUNDS; round++) {
        size_t count = 1 + random_below(&random, VALUES_MAX);
        memset(counts, 0, buckets * sizeof(*counts));
        for (size_t i = 0; i < count; i++) {
            values[i] = some_value(&random);
            counts[histogram_index(values[i], BITS)]++;
        }
        qsort(values, count, sizeof(values[0]), compare);
        assert_int_equal(histogram_total(counts, buckets), count);
        for (unsigned i = 0; i < 20; i++) {
            size_t rank = 1 + random_below(&random, count);
            uint64_t exact = values[rank - 1];
            double part = ((double)rank - 0.5) / (double)count;
            size_t index = histogram_quantile(counts, buckets, count, part);
            double off = (double)histogram_middle(index, BITS) - (double)exact;
            off = off < 0 ? -off : off;
            if (off > 0.01 * (double)exact)
                fail_msg("number %zu of %zu values: off by %.0f of %llu", rank, count, off,
                         (unsigned long long)exact);
        }
    }
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_lies_in_its_bucket),
        cmocka_unit_test(buckets_follow_each_other_without_gaps),
        cmocka_unit_test(quantiles_are_within_one_percent_of_the_sorted_value),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
