/* SPDX-License-Identifier: MIT
 *
 * Comma-separated lists: elements, and texts that only look like elements.
 */
#include "http/list.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ELEMENTS_MAX = 4 };

struct row {
    const char *list;
    const char *elements[ELEMENTS_MAX];
};

static void gives_the_elements_in_order(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { "", { NULL } },
        { " \t, ,,", { NULL } },
        { "a", { "a" } },
        { "a,b", { "a", "b" } },
        { " a b ,\tc\t", { "a b", "c" } },
        { ",close,", { "close" } },
        { "gzip;q=0.5, br", { "gzip;q=0.5", "br" } },
        { "\"a,b\", c", { "\"a,b\"", "c" } },
        { "\"a\\\",b\", c", { "\"a\\\",b\"", "c" } },
        { "\"a\\\\\", c", { "\"a\\\\\"", "c" } },
        { "x=\"a,b\";y, c", { "x=\"a,b\";y", "c" } },
        { "a\\,b", { "a\\", "b" } },
        { "a, \"b, c", { "a", "\"b, c" } },
        { "\"a\\", { "\"a\\" } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        struct span list = guard_text(&guard, rows[i].list);
        struct span element;
        for (size_t e = 0; e < ELEMENTS_MAX && rows[i].elements[e]; e++) {
            assert_true(http_list_next(&list, &element));
            if (!span_equal(element, span_text(rows[i].elements[e])))
                fail_msg("`%s`: expected `%s`, got `%.*s`", rows[i].list, rows[i].elements[e],
                         (int)element.len, element.at);
        }
        assert_false(http_list_next(&list, &element));
        assert_int_equal(list.len, 0);
        guard_done(&guard);
    }
}

static void finds_a_token_in_any_case_and_only_whole(void **state)
{
    (void)state;
    assert_true(http_list_has(SPAN("close"), SPAN("close")));
    assert_true(http_list_has(SPAN("TE, Close"), SPAN("close")));
    assert_false(http_list_has(SPAN("closed, enclose"), SPAN("close")));
    assert_false(http_list_has(SPAN("\"close\""), SPAN("close")));
    assert_false(http_list_has(SPAN("\"x, close"), SPAN("close")));
    assert_false(http_list_has(SPAN(""), SPAN("close")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_elements_in_order),
        cmocka_unit_test(finds_a_token_in_any_case_and_only_whole),
    };
    return cmocka_run_group_tests_name("http/list", tests, NULL, NULL);
}
