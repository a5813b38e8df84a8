/* SPDX-License-Identifier: MIT
 *
 * Encoding and decoding of histograms, and damaged texts. tests/e2e/test_load_results.py reads the
 * encoding with the library of HdrHistogram.
 */
#include "load/hdr.h"

#include "support/guard.h"
#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>

static const size_t bucket_bytes = sizeof(uint64_t) * 33792;

/* Made with hdrhistogram 0.10.8 for Python: HdrHistogram(1, 3600000000000, 3) with 2, 1000 twice,
 * 123456 and 3600000000000 recorded, and encode(). */
#define THEIRS "HISTFAAAACx4nJNpmSzMwMDAwwABzFCaEch0M9ixgMH+A1SC6SQ/y/48puYeZiYAmCMHew=="
static const char theirs[] = THEIRS;

static void check_round_trip(const struct load_durations *durations)
{
    struct load_durations back;
    assert_int_equal(load_durations_init(&back), 0);
    char *text = load_hdr_encode(durations);
    assert_non_null(text);
    assert_int_equal(load_hdr_decode(span_text(text), &back), 0);
    assert_int_equal(back.count, durations->count);
    assert_memory_equal(back.bucket, durations->bucket,
                        histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t));
    free(text);
    load_durations_done(&back);
}

static void decodes_what_it_encodes(void **state)
{
    (void)state;
    struct load_durations durations;
    uint64_t random = 3;
    assert_int_equal(load_durations_init(&durations), 0);
    check_round_trip(&durations);
    load_durations_add(&durations, 0);
    check_round_trip(&durations);
    load_durations_add(&durations, UINT64_MAX);
    check_round_trip(&durations);
    for (unsigned i = 0; i < 5000; i++)
        load_durations_add(&durations, fixture_random(&random) >> (24 + i % 40));
    check_round_trip(&durations);
    durations.bucket[77] += UINT64_C(1) << 52; /* a number of 8 bytes */
    durations.count += UINT64_C(1) << 52;
    check_round_trip(&durations);
    load_durations_done(&durations);
}

static void agrees_with_an_encoding_of_the_library(void **state)
{
    (void)state;
    struct load_durations durations;
    assert_int_equal(load_durations_init(&durations), 0);
    assert_int_equal(load_hdr_decode(SPAN(THEIRS), &durations), 0);
    assert_int_equal(durations.count, 5);
    assert_int_equal(durations.bucket[2], 1);
    assert_int_equal(durations.bucket[1000], 2);
    assert_int_equal(durations.bucket[histogram_index(123456, LOAD_BITS)], 1);
    assert_int_equal(durations.bucket[histogram_index(LOAD_LONGEST_NS, LOAD_BITS)], 1);
    char *text = load_hdr_encode(&durations);
    assert_string_equal(text, theirs);
    /* Some encoders write a single zero as a counter, others as a run of one. */
    assert_int_equal(
        load_hdr_decode(SPAN("HISTFAAAACJ4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A1SACQBXGQRQ"),
                        &durations),
        0);
    assert_int_equal(durations.count, 6);
    assert_int_equal(durations.bucket[1], 1);
    free(text);
    load_durations_done(&durations);
}

/* A damaged text adds nothing, and is not read past its end. */
static void refuses_damaged_texts(void **state)
{
    (void)state;
    struct load_durations durations;
    struct guard guard;
    assert_int_equal(load_durations_init(&durations), 0);
    size_t len = strlen(theirs);
    for (size_t i = 0; i < len; i++) {
        struct span text = guard_copy(&guard, span_of(theirs, i));
        assert_int_equal(load_hdr_decode(text, &durations), -EINVAL);
        guard_done(&guard);
    }
    unsigned accepted = 0;
    for (size_t i = 0; i < len; i++) {
        char damaged[sizeof(theirs)];
        memcpy(damaged, theirs, sizeof(theirs));
        damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
        struct span text = guard_copy(&guard, span_of(damaged, len));
        struct load_durations other;
        assert_int_equal(load_durations_init(&other), 0);
        accepted += load_hdr_decode(text, &other) == 0;
        load_durations_done(&other);
        guard_done(&guard);
    }
    assert_true(accepted <= 8); /* bits without meaning: the zlib level, padding, the ratio */
    assert_int_equal(load_hdr_decode(SPAN("@@@@"), &durations), -EINVAL);
    assert_int_equal(load_hdr_decode(SPAN("===="), &durations), -EINVAL);
    assert_int_equal(durations.count, 0);
    load_durations_done(&durations);
}

static void refuses_a_text_that_is_too_long(void **state)
{
    (void)state;
    struct load_durations durations;
    size_t len = bucket_bytes * 4;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'A', len);
    assert_int_equal(load_durations_init(&durations), 0);
    assert_int_equal(load_hdr_decode(span_of(text, len), &durations), -EINVAL);
    load_durations_done(&durations);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_what_it_encodes),
        cmocka_unit_test(agrees_with_an_encoding_of_the_library),
        cmocka_unit_test(refuses_damaged_texts),
        cmocka_unit_test(refuses_a_text_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
