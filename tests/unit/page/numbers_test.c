/* SPDX-License-Identifier: MIT
 *
 * The seconds that an event holds, by what its client knows, and the reading that rates begin with.
 */
#include "page/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)

static void remember(const struct stats_segment *segment, uint64_t first, uint64_t last)
{
    for (uint64_t second = first; second <= last; second++) {
        struct stats_moment moment = { .at_ns = second * SECOND_NS };
        stats_segment_add_moment(segment, &moment);
    }
}

static unsigned count_of(const struct page_text *text, const char *what)
{
    char copy[256 * 1024];
    unsigned count = 0;
    assert_true(text && text->len < sizeof(copy));
    memcpy(copy, text->bytes, text->len);
    copy[text->len] = '\0';
    for (const char *at = copy; (at = strstr(at, what)); at++)
        count++;
    return count;
}

static void assert_event(struct page_numbers *numbers, uint64_t known_ns, const char *kind,
                         unsigned moments)
{
    static uint64_t now_ns = SECOND_NS;
    now_ns += SECOND_NS; /* later than any text can be reused */
    struct page_text *text = page_numbers_get_event(numbers, known_ns, now_ns);
    assert_int_equal(count_of(text, kind), 1);
    assert_int_equal(count_of(text, "seconds_ago\":") - 1, moments); /* one is the master's */
    struct page_text *same = page_numbers_get_event(numbers, known_ns, now_ns);
    assert_ptr_equal(same, text);
}

static void sends_the_seconds_since_the_last_event(void **state)
{
    (void)state;
    struct stats_segment segment;
    int why;
    assert_int_equal(stats_segment_create(&segment, &why), 0);
    struct page_numbers numbers = { .segment = &segment };
    assert_event(&numbers, 0, "event: stats\n", 0);
    remember(&segment, 1, 10);
    assert_event(&numbers, 0, "event: stats\n", 10);
    assert_event(&numbers, 10 * SECOND_NS, "event: second\n", 0);
    remember(&segment, 11, 11);
    assert_event(&numbers, 10 * SECOND_NS, "event: second\n", 1);
    assert_event(&numbers, 4 * SECOND_NS, "event: second\n", 7);
    assert_event(&numbers, 4 * SECOND_NS + 1, "event: stats\n", 11);
    assert_event(&numbers, 99 * SECOND_NS, "event: stats\n", 11);
    remember(&segment, 12, STATS_MOMENTS + 4);
    assert_event(&numbers, 5 * SECOND_NS, "event: second\n", STATS_MOMENTS - 1);
    assert_event(&numbers, 4 * SECOND_NS, "event: stats\n", STATS_MOMENTS);
    page_numbers_done(&numbers);
    stats_segment_remove(&segment);
}

/* Readings follow each other at `step_ns`. Each has an earlier one, as soon as there is one. */
static void assert_compared(const struct stats_segment *segment, uint64_t step_ns)
{
    struct page_numbers numbers = { .segment = segment };
    uint64_t first_ns = 100 * SECOND_NS;
    for (uint64_t now_ns = first_ns; now_ns < first_ns + 30 * SECOND_NS; now_ns += step_ns) {
        assert_non_null(page_numbers_get(&numbers, PAGE_JSON, now_ns));
        const struct view *before = numbers.view.before;
        if (now_ns - first_ns < SECOND_NS)
            continue;
        assert_ptr_equal(before, &numbers.before);
        assert_non_null(before->snapshot);
        assert_in_range(now_ns - numbers.before_ns, SECOND_NS / 2, 2 * SECOND_NS + step_ns);
    }
    page_numbers_done(&numbers);
}

static void compares_readings_however_often_they_are_made(void **state)
{
    (void)state;
    struct stats_segment segment;
    int why;
    assert_int_equal(stats_segment_create(&segment, &why), 0);
    for (uint64_t step_ms = 60; step_ms <= 6000; step_ms += step_ms / 2)
        assert_compared(&segment, step_ms * (SECOND_NS / 1000));
    stats_segment_remove(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_the_seconds_since_the_last_event),
        cmocka_unit_test(compares_readings_however_often_they_are_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
