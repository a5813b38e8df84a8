/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void has_three_figures_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0.00 us" },
        { 4, "0.00 us" },
        { 5, "0.01 us" },
        { 1234, "1.23 us" },
        { 9994, "9.99 us" },
        { 9995, "10.0 us" },
        { 99949, "99.9 us" },
        { 99950, "100 us" },
        { 999499, "999 us" },
        { 999500, "1.00 ms" },
        { 12345678, "12.3 ms" },
        { 999499999, "999 ms" },
        { 999500000, "1.00 s" },
        { UINT64_C(61000000000), "61.0 s" },
        { UINT64_C(3600000000000), "3600 s" },
        { UINT64_MAX, "18446744074 s" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(duration_format(rows[i].ns).text, rows[i].text);
}

static void reads_a_number_with_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } rows[] = {
        { "0", 0 },
        { "0s", 0 },
        { "0.000us", 0 },
        { "500ms", 500 * DURATION_MS },
        { "10S", 10 * DURATION_SECOND },
        { "2m", 120 * DURATION_SECOND },
        { "1h", 3600 * DURATION_SECOND },
        { "1.5s", 1500 * DURATION_MS },
        { ".25us", 250 },
        { "0.001us", 1 },
        { "1.0000000019s", DURATION_SECOND + 1 },
        { "18446744073709551.615us", UINT64_MAX },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ns = 99;
        if (!duration_parse(span_text(rows[i].text), &ns))
            fail_msg("`%s` is refused", rows[i].text);
        assert_true(ns == rows[i].ns);
    }
}

static void refuses_what_is_not_a_duration(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",    "s",           ".s",       ".",
        "10",  "00",          "0.0",      "-1s",
        "+1s", "1 s",         " 1s",      "1s ",
        "1d",  "1.2.3s",      "1e3s",     "18446744073709551.616us",
        "5h0", "9999999999h", "0.0001us", "18446744073709551616us",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ns = 99;
        if (duration_parse(span_text(rows[i]), &ns))
            fail_msg("`%s` is taken", rows[i]);
        assert_int_equal(ns, 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_three_figures_and_a_unit),
        cmocka_unit_test(reads_a_number_with_a_unit),
        cmocka_unit_test(refuses_what_is_not_a_duration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
