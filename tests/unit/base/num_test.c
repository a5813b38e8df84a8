/* SPDX-License-Identifier: MIT
 *
 * Numbers at their edges, from text and to text.
 */
#include "base/num.h"

#include "support/guard.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static bool parse(bool (*parser)(struct span, uint64_t *), const char *text, uint64_t *ret_value)
{
    struct guard guard;
    bool ok = parser(guard_text(&guard, text), ret_value);

    guard_done(&guard);
    return ok;
}

struct good {
    const char *text;
    uint64_t value;
};

static void check_good(bool (*parser)(struct span, uint64_t *), const struct good *rows,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 12345;
        if (!parse(parser, rows[i].text, &value))
            fail_msg("`%s` was refused", rows[i].text);
        assert_int_equal(value, rows[i].value);
    }
}

static void check_bad(bool (*parser)(struct span, uint64_t *), const char *const *texts,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 12345;
        if (parse(parser, texts[i], &value))
            fail_msg("`%s` was read as %" PRIu64, texts[i], value);
        assert_int_equal(value, 12345);
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void reads_decimal_digits(void **state)
{
    (void)state;
    static const struct good rows[] = {
        { "0", 0 },
        { "7", 7 },
        { "005", 5 },
        { "4294967296", 4294967296u },
        { "18446744073709551615", UINT64_MAX },
        { "000000000000000000000000000018446744073709551615", UINT64_MAX },
    };
    check_good(num_parse_u64, rows, COUNT(rows));
}

static void refuses_what_is_not_a_decimal_number(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "-1",
        "+5",
        "0x5",
        "1_0",
        "5x",
        "5 5",
        " 5",
        "5 ",
        "1e3",
        "٣",
        "1.0",
        "/",
        ":",
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "184467440737095516150",
    };
    check_bad(num_parse_u64, texts, COUNT(texts));
}

static void reads_hexadecimal_digits_of_either_case(void **state)
{
    (void)state;
    static const struct good rows[] = {
        { "0", 0 },
        { "A", 10 },
        { "fF", 255 },
        { "000A", 10 },
        { "ffffffffffffffff", UINT64_MAX },
        { "00000000FFFFFFFFFFFFFFFF", UINT64_MAX },
    };
    check_good(num_parse_hex, rows, COUNT(rows));
}

static void refuses_what_is_not_a_hexadecimal_number(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "g", "0x5", "-1", "+5", " 5", "5 ", "1_0", "10000000000000000", "FFFFFFFFFFFFFFFF0",
    };
    check_bad(num_parse_hex, texts, COUNT(texts));
}

static void knows_the_value_of_every_hexadecimal_digit_and_of_nothing_else(void **state)
{
    (void)state;
    static const char digits[] = "0123456789abcdefABCDEF";

    for (int c = 0; c < 256; c++) {
        const char *at = c == 0 ? NULL : strchr(digits, c);
        int want = at == NULL ? -1 : (int)(at - digits);
        assert_int_equal(num_hex_digit((char)c), want > 15 ? want - 6 : want);
    }
}

static void check_format(uint64_t value)
{
    char want[32];
    char got[NUM_U64_DIGITS];
    int want_len = snprintf(want, sizeof(want), "%" PRIu64, value);
    size_t got_len = num_format_u64(got, value);

    assert_int_equal(got_len, want_len);
    assert_memory_equal(got, want, got_len);
}

static void writes_every_power_of_ten_and_its_neighbours(void **state)
{
    (void)state;
    uint64_t power = 1;

    check_format(0);
    check_format(UINT64_MAX);
    for (int i = 0; i < NUM_U64_DIGITS; i++, power *= 10) {
        check_format(power - 1);
        check_format(power);
        check_format(power + 1);
    }
}

static void writes_hexadecimal_digits_as_printf_does(void **state)
{
    (void)state;
    uint64_t value = UINT64_C(0x0123456789abcdef);

    for (int i = 0; i < 64; i++, value = value << 1 | value >> 63) {
        char want[32];
        char got[NUM_HEX_DIGITS];
        (void)snprintf(want, sizeof(want), "%016" PRIx64, value);
        num_format_hex(got, value);
        assert_memory_equal(got, want, NUM_HEX_DIGITS);
        (void)snprintf(want, sizeof(want), "%016" PRIx64, UINT64_C(1) << i);
        num_format_hex(got, UINT64_C(1) << i);
        assert_memory_equal(got, want, NUM_HEX_DIGITS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_decimal_digits),
        cmocka_unit_test(refuses_what_is_not_a_decimal_number),
        cmocka_unit_test(reads_hexadecimal_digits_of_either_case),
        cmocka_unit_test(refuses_what_is_not_a_hexadecimal_number),
        cmocka_unit_test(knows_the_value_of_every_hexadecimal_digit_and_of_nothing_else),
        cmocka_unit_test(writes_hexadecimal_digits_as_printf_does),
        cmocka_unit_test(writes_every_power_of_ten_and_its_neighbours),
    };
    return cmocka_run_group_tests_name("base/num", tests, NULL, NULL);
}
