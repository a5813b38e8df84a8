/* SPDX-License-Identifier: MIT
 *
 * Spans compared and cut, the empty one and the one at address NULL included.
 */
#include "base/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct span nowhere = { NULL, 0 };

static void compares_bytes_and_length(void **state)
{
    (void)state;
    assert_true(span_equal(SPAN("abc"), span_text("abc")));
    assert_false(span_equal(SPAN("abc"), SPAN("abd")));
    assert_false(span_equal(SPAN("abc"), SPAN("ab")));
    assert_true(span_equal(SPAN("a\0b"), SPAN("a\0b")));
    assert_false(span_equal(SPAN("a\0b"), SPAN("a\0c")));
    assert_true(span_equal(nowhere, SPAN("")));
}

static void finds_beginnings_and_ends(void **state)
{
    (void)state;
    assert_true(span_starts(SPAN("abc"), SPAN("ab")));
    assert_true(span_starts(SPAN("abc"), nowhere));
    assert_false(span_starts(SPAN("ab"), SPAN("abc")));
    assert_false(span_starts(nowhere, SPAN("a")));
    assert_true(span_ends(SPAN("abc"), SPAN("bc")));
    assert_true(span_ends(nowhere, nowhere));
    assert_false(span_ends(SPAN("abc"), SPAN("ab")));
    assert_false(span_ends(SPAN("c"), SPAN("bc")));
}

static void ignores_the_case_of_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(span_equal_nocase(SPAN("Keep-Alive"), SPAN("kEEP-aLIVE")));
    assert_false(span_equal_nocase(SPAN("[a"), SPAN("{a")));
    assert_false(span_equal_nocase(SPAN("@"), SPAN("`")));
    assert_false(span_equal_nocase(SPAN("\xc9"), SPAN("\xe9")));
    assert_false(span_equal_nocase(SPAN("a"), SPAN("ab")));
}

static void trims_spaces_and_tabs_and_nothing_else(void **state)
{
    (void)state;
    assert_true(span_equal(span_trim(SPAN(" \t a b\t ")), SPAN("a b")));
    assert_true(span_equal(span_trim(SPAN("\ra\n")), SPAN("\ra\n")));
    assert_int_equal(span_trim(SPAN(" \t ")).len, 0);
    assert_int_equal(span_trim(nowhere).len, 0);
}

static void cuts_at_either_end(void **state)
{
    (void)state;
    assert_true(span_equal(span_skip(SPAN("abc"), 1), SPAN("bc")));
    assert_int_equal(span_skip(SPAN("abc"), 3).len, 0);
    assert_true(span_equal(span_first(SPAN("abc"), 2), SPAN("ab")));
    assert_true(span_equal(span_first(SPAN("abc"), 9), SPAN("abc")));
}

static void takes_parts_up_to_a_separator(void **state)
{
    (void)state;
    struct span rest = SPAN("a=b==");
    assert_true(span_equal(span_take(&rest, '='), SPAN("a")));
    assert_true(span_equal(span_take(&rest, '='), SPAN("b")));
    assert_true(span_equal(rest, SPAN("=")));
    assert_int_equal(span_take(&rest, '=').len, 0);
    assert_int_equal(span_take(&rest, '=').len, 0);
    rest = SPAN(" whole ");
    assert_true(span_equal(span_take(&rest, '='), SPAN(" whole ")));
    assert_int_equal(rest.len, 0);
    rest = nowhere;
    assert_int_equal(span_take(&rest, '=').len, 0);
}

static void takes_words_between_spaces_and_tabs(void **state)
{
    (void)state;
    struct span rest = SPAN(" \tone\t two\n ");
    assert_true(span_equal(span_take_word(&rest), SPAN("one")));
    assert_true(span_equal(span_take_word(&rest), SPAN("two\n")));
    assert_int_equal(span_take_word(&rest).len, 0);
    rest = nowhere;
    assert_int_equal(span_take_word(&rest).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_bytes_and_length),
        cmocka_unit_test(finds_beginnings_and_ends),
        cmocka_unit_test(ignores_the_case_of_ascii_letters_only),
        cmocka_unit_test(trims_spaces_and_tabs_and_nothing_else),
        cmocka_unit_test(cuts_at_either_end),
        cmocka_unit_test(takes_parts_up_to_a_separator),
        cmocka_unit_test(takes_words_between_spaces_and_tabs),
    };
    return cmocka_run_group_tests_name("base/span", tests, NULL, NULL);
}
