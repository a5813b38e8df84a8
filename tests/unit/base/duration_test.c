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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(has_three_figures_and_a_unit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
