/* SPDX-License-Identifier: MIT */
#include "base/calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void dates_are_those_of_the_calendar(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *text;
    } rows[] = {
        { 0, "1970-01-01T00:00:00Z" },
        { -1, "1969-12-31T23:59:59Z" },
        { 68169600, "1972-02-29T00:00:00Z" },
        { 951782400, "2000-02-29T00:00:00Z" },
        { 4107542399, "2100-02-28T23:59:59Z" },
        { 4107542400, "2100-03-01T00:00:00Z" },
        { 1795248000, "2026-11-21T08:00:00Z" },
        { CALENDAR_FIRST, "0000-01-01T00:00:00Z" },
        { CALENDAR_FIRST + 59 * 86400, "0000-02-29T00:00:00Z" },
        { CALENDAR_FIRST + 60 * 86400, "0000-03-01T00:00:00Z" },
        { CALENDAR_LAST, "9999-12-31T23:59:59Z" },
        { INT64_MIN, "0000-01-01T00:00:00Z" },
        { INT64_MAX, "9999-12-31T23:59:59Z" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[CALENDAR_LEN + 1] = "";
        calendar_format(text, rows[i].seconds);
        assert_string_equal(text, rows[i].text);
    }
}

static void every_day_of_10000_years_follows_the_one_before(void **state)
{
    (void)state;
    struct calendar expected = { .year = 0, .month = 1, .day = 1 };
    for (int64_t at = CALENDAR_FIRST; at <= CALENDAR_LAST; at += 86400) {
        struct calendar when = calendar_of(at);
        if (when.year != expected.year || when.month != expected.month ||
            when.day != expected.day || calendar_seconds(&when) != at)
            fail_msg("the day %lld is %d-%d-%d", (long long)at, when.year, when.month, when.day);
        if (expected.day++ < calendar_days(expected.year, expected.month))
            continue;
        expected.day = 1;
        if (expected.month++ < 12)
            continue;
        expected.month = 1;
        expected.year++;
    }
    assert_int_equal(expected.year, 10000);
}

static void a_leap_second_is_the_next_day(void **state)
{
    (void)state;
    const struct calendar leap = { 2016, 12, 31, 23, 59, 60 };
    assert_int_equal(calendar_seconds(&leap), 1483228800);
}

static void months_have_names_of_three_letters(void **state)
{
    (void)state;
    assert_string_equal(calendar_month(1), "Jan");
    assert_string_equal(calendar_month(12), "Dec");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_those_of_the_calendar),
        cmocka_unit_test(every_day_of_10000_years_follows_the_one_before),
        cmocka_unit_test(a_leap_second_is_the_next_day),
        cmocka_unit_test(months_have_names_of_three_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
