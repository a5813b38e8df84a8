/* SPDX-License-Identifier: MIT
 *
 * Histograms on the way to others and back; texts that are damaged in every way.
 * That HdrHistogram's own libraries read them is tests/e2e/test_load_results.py.
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

static void what_is_encoded_is_decoded(void **state)
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

static void theirs_is_read_and_ours_is_theirs(void **state)
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
    /* A single zero before a 1 is one counter to some and a run of one to others. */
    assert_int_equal(
        load_hdr_decode(SPAN("HISTFAAAACJ4nJNpmSzMwMDAxAABzFCaEch0M9ixgMH+A1SACQBXGQRQ"),
                        &durations),
        0);
    assert_int_equal(durations.count, 6);
    assert_int_equal(durations.bucket[1], 1);
    free(text);
    load_durations_done(&durations);
}

/* None adds anything, and none is read past its end. */
static void damaged_texts_are_refused(void **state)
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
    assert_true(accepted <= 8); /* bits that mean nothing: of zlib's level, of padding, the ratio */
    assert_int_equal(load_hdr_decode(SPAN("@@@@"), &durations), -EINVAL);
    assert_int_equal(load_hdr_decode(SPAN("===="), &durations), -EINVAL);
    assert_int_equal(durations.count, 0);
    load_durations_done(&durations);
}

static void a_text_longer_than_any_is_refused(void **state)
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
        cmocka_unit_test(what_is_encoded_is_decoded),
        cmocka_unit_test(theirs_is_read_and_ours_is_theirs),
        cmocka_unit_test(damaged_texts_are_refused),
        cmocka_unit_test(a_text_longer_than_any_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
