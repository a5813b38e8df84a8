/* SPDX-License-Identifier: MIT
 *
 * The classes themselves, byte by byte, and a few runs that people can read.
 * That the fast routines equal their scalar twins is tests/property/scan_test.c.
 */
#include "base/scan.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

typedef size_t scanner(const char *at, size_t len);

static size_t scan(scanner *routine, const char *text)
{
    struct guard guard;
    struct span copy = guard_text(&guard, text);
    size_t index = routine(copy.at, copy.len);

    guard_done(&guard);
    return index;
}

/* Every byte alone: found exactly when it is in the class. */
static void check_class(scanner *routine, bool (*in_class)(unsigned char))
{
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        assert_int_equal(routine(&byte, 1), in_class((unsigned char)c) ? 0 : 1);
    }
    assert_int_equal(routine("", 0), 0);
}

static bool ends_field_value(unsigned char c)
{
    return c != '\t' && (c <= 0x1f || c == 0x7f);
}

static bool ends_target(unsigned char c)
{
    return c <= 0x20 || c == 0x7f;
}

static bool ends_plain_name(unsigned char c)
{
    return c == 0 ||
           strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", c) == NULL;
}

static bool unsafe_in_log(unsigned char c)
{
    return c < 0x20 || c > 0x7e || c == '"' || c == '\\';
}

static bool special_in_path(unsigned char c)
{
    return c == '%' || c == '?' || c == '#' || c == 0;
}

static void has_the_classes_of_its_contract(void **state)
{
    (void)state;
    check_class(scan_field_value_end_scalar, ends_field_value);
    check_class(scan_target_end_scalar, ends_target);
    check_class(scan_plain_name_end_scalar, ends_plain_name);
    check_class(scan_log_unsafe_scalar, unsafe_in_log);
    check_class(scan_path_special_scalar, special_in_path);
}

static void finds_the_end_of_a_line_and_of_a_target(void **state)
{
    (void)state;
    assert_int_equal(scan(scan_field_value_end, "text/html, */*;q=0.1 \t\xe9\r\nHost: a"), 23);
    assert_int_equal(scan(scan_target_end, "/assets/style.css?v=3 HTTP/1.1"), 21);
    assert_int_equal(scan(scan_target_end, "/caf\xc3\xa9 x"), 6);
    assert_int_equal(scan(scan_plain_name_end, "Upgrade-Insecure-Requests: 1"), 25);
}

static void finds_bytes_that_make_a_path_need_decoding(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t index;
    } rows[] = {
        { "/", 1 },
        { "/a/", 3 },
        { "//", 0 },
        { "/.", 0 },
        { "/a.b/c.d", 8 },
        { "/a/../b", 2 },
        { "/aaaaaa/.b", 7 },
        { "/aaaaaaa/.b", 8 },
        { "/aaaaaaaaaaaaa//b", 14 },
        { "/aaaaaaaaaaaaaa//b", 15 },
        { "/aaaaaaaaaaaaaaa//b", 16 },
        { "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa/./", 30 },
        { "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/./", 31 },
        { "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/", 32 },
        { "/a?b", 2 },
        { "/abcdefghijklmnopqrstuvwxyz%41", 27 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t index = scan(scan_path_special, rows[i].path);
        if (index != rows[i].index)
            fail_msg("`%s`: expected %zu, got %zu", rows[i].path, rows[i].index, index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_classes_of_its_contract),
        cmocka_unit_test(finds_the_end_of_a_line_and_of_a_target),
        cmocka_unit_test(finds_bytes_that_make_a_path_need_decoding),
    };
    return cmocka_run_group_tests_name("base/scan", tests, NULL, NULL);
}
