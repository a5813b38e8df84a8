/* SPDX-License-Identifier: MIT */
#include "base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void has_three_digits_and_a_binary_unit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.00 KiB" },
        { 1536, "1.50 KiB" },
        { 10234, "9.99 KiB" },
        { 10235, "10.0 KiB" },
        { 102350, "100 KiB" },
        { 1048063, "1023 KiB" },
        { 1048064, "1.00 MiB" },
        { UINT64_C(5000000000000), "4.55 TiB" },
        { UINT64_C(1000000000000000000), "888 PiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(size_format(rows[i].bytes).text, rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_three_digits_and_a_binary_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
