/* SPDX-License-Identifier: MIT
 *
 * HTTP dates: known dates, the three forms, and texts that are nearly a date.
 * tests/property/date_test.c compares with the C library's calendar.
 */
#include "http/date.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW_2024 INT64_C(1704067200) /* Mon, 01 Jan 2024 00:00:00 GMT */

static bool parse(const char *text, int64_t now, int64_t *ret_seconds)
{
    struct guard guard;
    bool good = http_date_parse(guard_text(&guard, text), now, ret_seconds);
    guard_done(&guard);
    return good;
}

static void assert_date(const char *text, int64_t now, int64_t expected)
{
    int64_t seconds = 0;
    if (!parse(text, now, &seconds))
        fail_msg("`%s` was refused", text);
    if (seconds != expected)
        fail_msg("`%s`: expected %lld, got %lld", text, (long long)expected, (long long)seconds);
}

static const struct {
    int64_t seconds;
    const char *text;
} instants[] = {
    { 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
    { 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
    { 951782400, "Tue, 29 Feb 2000 00:00:00 GMT" },
    { 951868799, "Tue, 29 Feb 2000 23:59:59 GMT" },
    { 951868800, "Wed, 01 Mar 2000 00:00:00 GMT" },
    { 1704067199, "Sun, 31 Dec 2023 23:59:59 GMT" },
    { 1709164800, "Thu, 29 Feb 2024 00:00:00 GMT" },
    { 2147483648, "Tue, 19 Jan 2038 03:14:08 GMT" },
    { 4107542400, "Mon, 01 Mar 2100 00:00:00 GMT" },
    { 253402300799, "Fri, 31 Dec 9999 23:59:59 GMT" },
};

static void assert_formatted(int64_t seconds, const char *expected)
{
    char text[HTTP_DATE_LEN];
    http_date_format(text, seconds);
    assert_memory_equal(text, expected, HTTP_DATE_LEN);
}

static void writes_and_reads_known_dates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
        assert_formatted(instants[i].seconds, instants[i].text);
        assert_date(instants[i].text, NOW_2024, instants[i].seconds);
    }
}

static void clamps_to_years_of_four_digits(void **state)
{
    (void)state;
    assert_formatted(-1, "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_formatted(INT64_MIN, "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_formatted(253402300800, "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_formatted(INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT");
}

static void reads_all_three_forms(void **state)
{
    (void)state;
    assert_date("Sun, 06 Nov 1994 08:49:37 GMT", NOW_2024, 784111777);
    assert_date("Sunday, 06-Nov-94 08:49:37 GMT", NOW_2024, 784111777);
    assert_date("Sun Nov  6 08:49:37 1994", NOW_2024, 784111777);
    assert_date("Wed Nov 16 08:49:37 1994", NOW_2024, 784975777);
}

static void reads_every_day_name_of_rfc850(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Sunday, 06-Nov-94 08:49:37 GMT",   "Monday, 07-Nov-94 08:49:37 GMT",
        "Tuesday, 08-Nov-94 08:49:37 GMT",  "Wednesday, 09-Nov-94 08:49:37 GMT",
        "Thursday, 10-Nov-94 08:49:37 GMT", "Friday, 11-Nov-94 08:49:37 GMT",
        "Saturday, 12-Nov-94 08:49:37 GMT",
    };
    for (int i = 0; i < 7; i++)
        assert_date(texts[i], NOW_2024, 784111777 + i * INT64_C(86400));
}

static void reads_a_two_digit_year_as_at_most_fifty_years_ahead(void **state)
{
    (void)state;
    /* Now is the first second of 2024: fifty years ahead is the first of 2074. */
    assert_date("Monday, 01-Jan-74 00:00:00 GMT", NOW_2024, 3281990400);
    assert_date("Monday, 01-Jan-74 00:00:01 GMT", NOW_2024, 126230401);
    assert_date("Monday, 01-Jan-24 00:00:00 GMT", NOW_2024, NOW_2024);
    assert_date("Sunday, 31-Dec-23 23:59:59 GMT", NOW_2024, NOW_2024 - 1);
    /* Near a century's end the fifty years reach into the next one, and early in a
     * century they do not reach its end. */
    assert_date("Saturday, 01-Jan-00 00:00:00 GMT", 915148800, 946684800);
    assert_date("Friday, 01-Jan-99 00:00:00 GMT", NOW_2024, 915148800);
    /* A wrong clock does no harm. */
    assert_date("Thursday, 01-Jan-70 00:00:00 GMT", INT64_MIN, 0);
    int64_t seconds = 0;
    assert_true(parse("Thursday, 01-Jan-70 00:00:00 GMT", INT64_MAX, &seconds));
}

static void reads_years_before_1970_and_a_leap_second(void **state)
{
    (void)state;
    assert_date("Wed, 31 Dec 1969 23:59:59 GMT", NOW_2024, -1);
    assert_date("Sat, 01 Jan 0000 00:00:00 GMT", NOW_2024, -INT64_C(62167219200));
    assert_date("Mon, 29 Feb 0000 00:00:00 GMT", NOW_2024, -INT64_C(62167219200) + 59 * 86400);
    assert_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW_2024, 1483228800);
}

static void does_not_compare_the_day_name_with_the_date(void **state)
{
    (void)state;
    assert_date("Mon, 06 Nov 1994 08:49:37 GMT", NOW_2024, 784111777);
}

static void refuses_malformed_dates(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "S",
        "Sun",
        "Sun,",
        "garbage",
        "0",
        "784111777",
        "1994-11-06T08:49:37Z",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 ",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT; length=3",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:60 GMT",
        "Sun, 06 Nov 1994 23:59:61 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 32 Dec 1994 08:49:37 GMT",
        "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 29 Feb 1900 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday 06-Nov-94 08:49:37 GMT",
        "Sunnesday, 06-Nov-94 08:49:37 GMT",
        "Sunday, 31-Feb-94 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  0 08:49:37 1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov 31 08:49:37 1994",
        "Sun  Nov 6 08:49:37 1994",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int64_t seconds = 42;
        if (parse(texts[i], NOW_2024, &seconds))
            fail_msg("`%s` was taken for %lld", texts[i], (long long)seconds);
        assert_int_equal(seconds, 42);
    }
}

static void refuses_every_truncated_date(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct guard guard;
        int64_t seconds = 0;
        size_t len = strlen(texts[i]);
        for (size_t cut = 0; cut < len; cut++) {
            struct span text = guard_copy(&guard, span_of(texts[i], cut));
            assert_false(http_date_parse(text, NOW_2024, &seconds));
            guard_done(&guard);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads_known_dates),
        cmocka_unit_test(clamps_to_years_of_four_digits),
        cmocka_unit_test(reads_all_three_forms),
        cmocka_unit_test(reads_every_day_name_of_rfc850),
        cmocka_unit_test(reads_a_two_digit_year_as_at_most_fifty_years_ahead),
        cmocka_unit_test(reads_years_before_1970_and_a_leap_second),
        cmocka_unit_test(does_not_compare_the_day_name_with_the_date),
        cmocka_unit_test(refuses_malformed_dates),
        cmocka_unit_test(refuses_every_truncated_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
