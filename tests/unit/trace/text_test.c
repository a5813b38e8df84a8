/* SPDX-License-Identifier: MIT
 *
 * The comparison of two heads: the one that is expected, and the one of a running server.
 */
#include "trace/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static bool are_same(const char *a, const char *b)
{
    const bool same = trace_same(span_text(a), span_text(b));
    assert_int_equal(same, trace_same(span_text(b), span_text(a)));
    return same;
}

static void the_date_does_not_count(void **state)
{
    (void)state;
    assert_true(are_same("HTTP/1.1 200 OK\r\nDate: Sat, 28 Nov 2026 10:13:10 GMT\r\n\r\n",
                         "HTTP/1.1 200 OK\r\nDate: Sat, 28 Nov 2026 10:13:11 GMT\r\n\r\n"));
    assert_true(are_same("HTTP/2.0 200\r\ndate: Sat, 28 Nov 2026 10:13:10 GMT\r\n\r\n",
                         "HTTP/2.0 200\r\ndate: Sat, 28 Nov 2026 10:13:11 GMT\r\n\r\n"));
    assert_false(are_same("HTTP/2.0 200\r\ndate: Sat, 28 Nov 2026 10:13:10 GMT\r\n\r\n",
                          "HTTP/2.0 200\r\n\r\n"));
}

static void every_other_line_counts_in_any_order(void **state)
{
    (void)state;
    assert_true(are_same("HTTP/1.1 200 OK\r\nServer: weir\r\nDated: a\r\n\r\n",
                         "HTTP/1.1 200 OK\r\nDated: a\r\nServer: weir\r\n\r\n"));
    assert_false(
        are_same("HTTP/1.1 200 OK\r\nDated: a\r\n\r\n", "HTTP/1.1 200 OK\r\nDated: b\r\n\r\n"));
    assert_false(are_same("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 404 Not Found\r\n\r\n"));
    assert_false(are_same("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nDate\r\n\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_date_does_not_count),
        cmocka_unit_test(every_other_line_counts_in_any_order),
    };
    return cmocka_run_group_tests_name("trace/text", tests, NULL, NULL);
}
