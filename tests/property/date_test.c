/* SPDX-License-Identifier: MIT
 *
 * Random dates compared with the C library's calendar, which the code under test does not use.
 * Every form is written and read back, and then damaged at random.
 */
#include "http/date.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { ROUNDS = 20000, TEXT_SIZE = 64 };

#define YEAR_0000     (-INT64_C(62167219200))
#define YEAR_1970     INT64_C(0)
#define YEAR_9999_END INT64_C(253402300799)

static struct random_source rng;

static const char *const forms[] = {
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %e %H:%M:%S %Y",
};

enum { IMF_FIXDATE, RFC850, ASCTIME, FORM_COUNT };

/* `strftime` omits the leading zeros of a year. This adds them. */
static size_t render(char *out, int64_t seconds, int form)
{
    struct tm tm;
    time_t time = (time_t)seconds;
    assert_non_null(gmtime_r(&time, &tm));
    char year[16];
    (void)snprintf(year, sizeof year, "%04d", tm.tm_year + 1900);

    char pattern[TEXT_SIZE];
    size_t len = 0;
    for (const char *at = forms[form]; *at != '\0'; at++) {
        bool is_year = at[0] == '%' && at[1] == 'Y';
        len += (size_t)snprintf(pattern + len, sizeof pattern - len, "%.*s", is_year ? 4 : 1,
                                is_year ? year : at);
        at += is_year;
    }
    return strftime(out, TEXT_SIZE, pattern, &tm);
}

static int64_t random_between(int64_t least, int64_t most)
{
    return least + (int64_t)random_below(&rng, (uint64_t)(most - least) + 1);
}

static bool parse(struct span text, int64_t now, int64_t *ret_seconds)
{
    struct guard guard;
    bool good = http_date_parse(guard_copy(&guard, text), now, ret_seconds);
    guard_done(&guard);
    return good;
}

static void formats_as_the_c_library_does_and_reads_it_back(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t seconds = random_between(YEAR_1970, YEAR_9999_END);
        char expected[TEXT_SIZE];
        assert_int_equal(render(expected, seconds, IMF_FIXDATE), HTTP_DATE_LEN);
        char got[HTTP_DATE_LEN];
        http_date_format(got, seconds);
        assert_memory_equal(got, expected, HTTP_DATE_LEN);

        int64_t back = -1;
        assert_true(parse(span_of(got, HTTP_DATE_LEN), 0, &back));
        assert_int_equal(back, seconds);
    }
}

static void every_day_of_four_centuries_agrees_with_the_c_library(void **state)
{
    (void)state;
    for (int64_t day = 0; day < 146097; day++) {
        char expected[TEXT_SIZE];
        char got[HTTP_DATE_LEN];
        (void)render(expected, day * 86400, IMF_FIXDATE);
        http_date_format(got, day * 86400);
        assert_memory_equal(got, expected, HTTP_DATE_LEN);
    }
}

static void forms_with_a_whole_year_are_read_in_every_year(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t seconds = random_between(YEAR_0000, YEAR_9999_END);
        int form = random_one_in(&rng, 2) ? IMF_FIXDATE : ASCTIME;
        char text[TEXT_SIZE];
        int64_t back = 0;
        size_t len = render(text, seconds, form);
        if (!parse(span_of(text, len), 0, &back) || back != seconds)
            fail_msg("`%s`: expected %lld, got %lld", text, (long long)seconds, (long long)back);
    }
}

/* The same time of the year, `years` later, by the C library. */
static int64_t years_later(int64_t seconds, int years)
{
    struct tm tm;
    time_t time = (time_t)seconds;
    assert_non_null(gmtime_r(&time, &tm));
    tm.tm_year += years;
    return timegm(&tm);
}

static void reads_two_digits_as_a_year_at_most_fifty_years_away(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t now = random_between(YEAR_1970, INT64_C(7258118400)); /* to the year 2200 */
        int64_t seconds = random_between(years_later(now, -50) + 1, years_later(now, 50));
        char text[TEXT_SIZE];
        int64_t back = 0;
        size_t len = render(text, seconds, RFC850);
        if (!parse(span_of(text, len), now, &back) || back != seconds)
            fail_msg("`%s` at %lld: expected %lld, got %lld", text, (long long)now,
                     (long long)seconds, (long long)back);
    }
}

/* The day name is skipped, because it is not compared with the date. */
static const char *behind_day_name(const char *text)
{
    return text + strcspn(text, " ");
}

/* One byte is changed, dropped or doubled. The result is either no date, or another date in its
 * exact spelling. */
static void reads_a_damaged_date_as_another_date_or_refuses_it(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789 :,-aAbDeFGJMNOSTt";
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int form = (int)random_below(&rng, FORM_COUNT);
        int64_t now = INT64_C(1704067200);
        char text[TEXT_SIZE + 1];
        size_t len = render(text, random_between(YEAR_1970, now), form);
        size_t at = random_below(&rng, len);
        switch (random_below(&rng, 3)) {
        case 0:
            text[at] = alphabet[random_below(&rng, sizeof(alphabet) - 1)];
            break;
        case 1:
            memmove(text + at, text + at + 1, len - at);
            len--;
            break;
        default:
            memmove(text + at + 1, text + at, len - at + 1);
            len++;
            break;
        }
        int64_t seconds = 0;
        if (!parse(span_of(text, len), now, &seconds)) {
            refused++;
            continue;
        }
        char again[TEXT_SIZE];
        (void)render(again, seconds, form);
        bool leap_second = strstr(text, "23:59:60") != NULL;
        bool zero_padded_day = form == ASCTIME && text[8] == '0';
        if (!leap_second && !zero_padded_day &&
            strcmp(behind_day_name(again), behind_day_name(text)) != 0)
            fail_msg("`%s` was read as `%s`", text, again);
    }
    assert_in_range(refused, ROUNDS / 4, ROUNDS - 1);
}

int main(void)
{
    rng = random_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_as_the_c_library_does_and_reads_it_back),
        cmocka_unit_test(every_day_of_four_centuries_agrees_with_the_c_library),
        cmocka_unit_test(forms_with_a_whole_year_are_read_in_every_year),
        cmocka_unit_test(reads_two_digits_as_a_year_at_most_fifty_years_away),
        cmocka_unit_test(reads_a_damaged_date_as_another_date_or_refuses_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
