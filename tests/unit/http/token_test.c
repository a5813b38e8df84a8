/* SPDX-License-Identifier: MIT
 *
 * Tokens, compared with RFC 9110 section 5.6.2 written down a second time.
 */
#include "http/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void knows_token_bytes(void **state)
{
    (void)state;
    static const char tokens[] = "!#$%&'*+-.^_`|~0123456789"
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int c = 1; c < 256; c++)
        assert_int_equal(http_token_byte((char)c), strchr(tokens, c) != NULL);
    assert_false(http_token_byte('\0'));
    assert_true(http_token_valid(span_text(tokens)));
    assert_false(http_token_valid(SPAN("")));
    assert_false(http_token_valid(SPAN("a b")));
    assert_false(http_token_valid(SPAN("a\xa0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_token_bytes),
    };
    return cmocka_run_group_tests_name("http/token", tests, NULL, NULL);
}
