/* SPDX-License-Identifier: MIT
 *
 * Durations compared with the same samples sorted: the error of buckets, and the exact numbers.
 */
#include "load/durations.h"

#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>

enum { SAMPLES = 20000 };

static int compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Samples of all sizes, from nanoseconds to an hour. */
static void draw(uint64_t *samples, size_t count)
{
    uint64_t state = 7;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = fixture_random(&state);
        samples[i] = (fixture_random(&state) >> (24 + number % 38)) % (LOAD_LONGEST_NS + 1);
    }
}

static void quantiles_equal_those_of_sorted_samples(void **state)
{
    (void)state;
    static uint64_t samples[SAMPLES];
    static const double parts[] = { 0.001, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999 };
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    draw(samples, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        load_durations_add(&durations, samples[i]);
    qsort(samples, SAMPLES, sizeof(samples[0]), compare);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint64_t exact = samples[(size_t)ceil(parts[i] * SAMPLES) - 1];
        uint64_t told = load_durations_quantile_ns(&durations, parts[i]);
        assert_true(told >= exact);
        assert_true((double)(told - exact) <= (double)exact / 1000);
    }
    assert_int_equal(durations.count, SAMPLES);
    assert_int_equal(durations.least_ns, samples[0]);
    assert_int_equal(durations.most_ns, samples[SAMPLES - 1]);
    assert_int_equal(load_durations_quantile_ns(&durations, 1), samples[SAMPLES - 1]);
    load_durations_done(&durations);
}

static void mean_and_deviation_are_exact(void **state)
{
    (void)state;
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    assert_true(load_durations_mean_ns(&durations) == 0);
    assert_true(load_durations_deviation_ns(&durations) == 0);
    static const uint64_t ns[] = { 2000003, 4000001, 4000001, 4000001,
                                   5000002, 5000002, 7000003, 9000003 };
    for (size_t i = 0; i < 8; i++)
        load_durations_add(&durations, ns[i]);
    assert_true(fabs(load_durations_mean_ns(&durations) - 5000002) < 1e-3);
    assert_true(fabs(load_durations_deviation_ns(&durations) - 2138090) < 2);
    load_durations_done(&durations);
}

static void equal_durations_do_not_deviate(void **state)
{
    (void)state;
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    for (unsigned i = 0; i < 100001; i++)
        load_durations_add(&durations, 123456789);
    double deviation = load_durations_deviation_ns(&durations);
    assert_true(deviation >= 0 && deviation < 1000);
    load_durations_done(&durations);
}

static void longer_durations_count_as_the_longest(void **state)
{
    (void)state;
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    assert_int_equal(load_durations_quantile_ns(&durations, 0.5), 0);
    load_durations_add(&durations, 0);
    assert_int_equal(durations.least_ns, 0);
    load_durations_add(&durations, UINT64_MAX);
    assert_int_equal(durations.most_ns, LOAD_LONGEST_NS);
    assert_int_equal(load_durations_quantile_ns(&durations, 1), LOAD_LONGEST_NS);
    assert_int_equal(load_durations_quantile_ns(&durations, 0.5), 0);
    load_durations_done(&durations);
}

static void merging_equals_counting_together(void **state)
{
    (void)state;
    static uint64_t samples[SAMPLES];
    struct load_durations part[2], all, none;
    assert_int_equal(load_durations_init(&part[0]), 0);
    assert_int_equal(load_durations_init(&part[1]), 0);
    assert_int_equal(load_durations_init(&all), 0);
    assert_int_equal(load_durations_init(&none), 0);
    draw(samples, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) {
        load_durations_add(&all, samples[i]);
        load_durations_add(&part[i % 3 == 0], samples[i]);
    }
    load_durations_merge(&part[0], &part[1]);
    load_durations_merge(&part[0], &none);
    load_durations_merge(&none, &part[0]);
    assert_int_equal(none.count, all.count);
    assert_int_equal(none.least_ns, all.least_ns);
    assert_int_equal(none.most_ns, all.most_ns);
    assert_true(fabs(none.sum_ns - all.sum_ns) <= all.sum_ns * 1e-12);
    assert_memory_equal(none.bucket, all.bucket,
                        histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t));
    load_durations_done(&part[0]);
    load_durations_done(&part[1]);
    load_durations_done(&all);
    load_durations_done(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_equal_those_of_sorted_samples),
        cmocka_unit_test(mean_and_deviation_are_exact),
        cmocka_unit_test(equal_durations_do_not_deviate),
        cmocka_unit_test(longer_durations_count_as_the_longest),
        cmocka_unit_test(merging_equals_counting_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
