/* SPDX-License-Identifier: MIT
 *
 * Histograms at the edges of their buckets, and what is read from counts.
 */
#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void small_values_have_a_bucket_each(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= HISTOGRAM_BITS_MAX; bits++)
        for (uint64_t value = 0; value < UINT64_C(2) << bits; value++) {
            assert_int_equal(histogram_index(value, bits), value);
            assert_int_equal(histogram_low(value, bits), value);
            assert_int_equal(histogram_high(value, bits), value);
            assert_int_equal(histogram_middle(value, bits), value);
        }
}

static void the_greatest_value_has_the_last_bucket(void **state)
{
    (void)state;
    for (unsigned bits = 1; bits <= HISTOGRAM_BITS_MAX; bits++) {
        size_t last = histogram_index(UINT64_MAX, bits);
        assert_int_equal(last + 1, (65 - (size_t)bits) << bits);
        assert_int_equal(histogram_buckets(UINT64_MAX, bits), last + 1);
        assert_true(histogram_high(last, bits) == UINT64_MAX);
    }
}

static void buckets_are_known_by_their_edges(void **state)
{
    (void)state;
    static const struct row {
        uint64_t value, low, high, middle;
        unsigned bits;
    } rows[] = {
        { 127, 127, 127, 127, 6 },
        { 128, 128, 129, 129, 6 },
        { 129, 128, 129, 129, 6 },
        { 130, 130, 131, 131, 6 },
        { 255, 254, 255, 255, 6 },
        { 256, 256, 259, 258, 6 },
        { 1000, 992, 1007, 1000, 5 },
        { 3, 3, 3, 3, 1 },
        { 4, 4, 5, 5, 1 },
        { 1000000, 999424, 1003519, 1001472, 7 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t index = histogram_index(rows[i].value, rows[i].bits);
        assert_int_equal(histogram_low(index, rows[i].bits), rows[i].low);
        assert_int_equal(histogram_high(index, rows[i].bits), rows[i].high);
        assert_int_equal(histogram_middle(index, rows[i].bits), rows[i].middle);
    }
}

static void no_values_have_no_quantile(void **state)
{
    (void)state;
    uint64_t counts[8] = { 0 };
    assert_int_equal(histogram_total(counts, 8), 0);
    assert_int_equal(histogram_quantile(counts, 8, 0, 0.5), 8);
}

static void quantiles_are_the_value_of_a_rank(void **state)
{
    (void)state;
    uint64_t counts[8] = { 0, 1, 0, 2, 0, 0, 1, 0 }; /* 1 3 3 6 */
    static const struct row {
        double part;
        size_t index;
    } rows[] = { { 0, 1 },    { 0.25, 1 },  { 0.26, 3 }, { 0.5, 3 }, { 0.75, 3 },
                 { 0.76, 6 }, { 0.999, 6 }, { 1, 6 },    { 2, 6 } };
    assert_int_equal(histogram_total(counts, 8), 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(histogram_quantile(counts, 8, 4, rows[i].part), rows[i].index);
}

static void what_is_at_most_a_value_is_counted_in_whole_buckets(void **state)
{
    (void)state;
    uint64_t counts[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }; /* with 1 bit: 0 1 2 3 4-5 6-7 8-11 12-15 */
    static const uint64_t rows[][2] = { { 0, 1 }, { 3, 4 },  { 4, 4 },  { 5, 5 },
                                        { 7, 6 }, { 10, 6 }, { 11, 7 }, { 1000, 8 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(histogram_at_most(counts, 8, rows[i][0], 1), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_have_a_bucket_each),
        cmocka_unit_test(the_greatest_value_has_the_last_bucket),
        cmocka_unit_test(buckets_are_known_by_their_edges),
        cmocka_unit_test(no_values_have_no_quantile),
        cmocka_unit_test(quantiles_are_the_value_of_a_rank),
        cmocka_unit_test(what_is_at_most_a_value_is_counted_in_whole_buckets),
    };
    return cmocka_run_group_tests_name("histogram", tests, NULL, NULL);
}
