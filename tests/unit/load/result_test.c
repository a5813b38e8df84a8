/* SPDX-License-Identifier: MIT
 *
 * The sum of the seconds of several threads or machines has the percentiles of all their durations
 * together.
 */
#include "load/result.h"

#include "load/hdr.h"
#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>

struct counted {
    struct load_second second;
    uint64_t bucket[LOAD_SECOND_BUCKETS];
};

static void count(struct counted *counted, uint64_t ns)
{
    struct load_second *second = &counted->second;
    counted->bucket[histogram_index(ns, LOAD_SECOND_BITS)]++;
    second->answers++;
    second->by_class[ns % 5]++;
    second->body_bytes += ns % 1000;
    second->most_ns = ns > second->most_ns ? ns : second->most_ns;
}

static void sums_have_the_percentiles_of_all_durations(void **state)
{
    (void)state;
    static struct counted whole, part[2];
    uint64_t random = 9;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t ns = fixture_random(&random) >> (24 + i % 30);
        ns = ns < LOAD_LONGEST_NS ? ns : LOAD_LONGEST_NS;
        count(&whole, ns);
        count(&part[i % 3 == 0], ns);
    }
    assert_int_equal(load_result_settle_second(&whole.second, whole.bucket), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(load_result_settle_second(&part[i].second, part[i].bucket), 0);
    assert_int_equal(load_result_add_second(&part[0].second, &part[1].second), 0);
    const struct load_second *a = &whole.second, *b = &part[0].second;
    assert_string_equal(a->hdr, b->hdr);
    assert_int_equal(a->answers, b->answers);
    assert_int_equal(a->body_bytes, b->body_bytes);
    assert_memory_equal(a->by_class, b->by_class, sizeof(a->by_class));
    assert_int_equal(a->p50_ns, b->p50_ns);
    assert_int_equal(a->p90_ns, b->p90_ns);
    assert_int_equal(a->p99_ns, b->p99_ns);
    assert_int_equal(a->most_ns, b->most_ns);
    assert_true(a->p50_ns > 0 && a->p50_ns < a->p90_ns && a->p90_ns < a->p99_ns);
    assert_true(a->p99_ns <= a->most_ns);
    for (unsigned i = 0; i < 2; i++)
        load_result_free_second(&part[i].second);
    load_result_free_second(&whole.second);
}

static void a_second_without_durations_leaves_no_percentiles(void **state)
{
    (void)state;
    static struct counted known;
    struct load_second none = { .errors = 3 }, sum = { 0 }, unknown = { .answers = 1 };
    count(&known, 1000000);
    assert_int_equal(load_result_settle_second(&known.second, known.bucket), 0);
    assert_int_equal(load_result_settle_second(&none, known.bucket), 0);
    assert_null(none.hdr);
    assert_int_equal(load_result_add_second(&sum, &none), 0);
    assert_null(sum.hdr);
    assert_int_equal(load_result_add_second(&sum, &known.second), 0);
    assert_string_equal(sum.hdr, known.second.hdr);
    assert_int_equal(sum.errors, 3);
    assert_int_equal(sum.p50_ns, 1000000); /* never more than the longest */
    assert_int_equal(load_result_add_second(&sum, &unknown), 0);
    assert_null(sum.hdr);
    assert_int_equal(sum.answers, 2);
    load_result_free_second(&known.second);
}

static void refuses_another_precision(void **state)
{
    (void)state;
    static uint64_t bucket[LOAD_SECOND_BUCKETS];
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    char *fine = load_hdr_encode(&durations), *coarse = load_hdr_encode_second(bucket);
    assert_non_null(fine);
    assert_non_null(coarse);
    assert_int_equal(load_hdr_decode_second(span_text(coarse), bucket), 0);
    assert_int_equal(load_hdr_decode_second(span_text(fine), bucket), -EINVAL);
    assert_int_equal(load_hdr_decode(span_text(coarse), &durations), -EINVAL);
    assert_int_equal(durations.count, 0);
    free(fine);
    free(coarse);
    load_durations_done(&durations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_percentiles_of_all_durations),
        cmocka_unit_test(a_second_without_durations_leaves_no_percentiles),
        cmocka_unit_test(refuses_another_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
