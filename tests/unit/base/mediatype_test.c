/* SPDX-License-Identifier: MIT
 *
 * Which texts are media types.
 */
#include "base/mediatype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void knows_two_tokens_with_a_slash(void **state)
{
    (void)state;
    assert_true(mediatype_valid(SPAN("text/html")));
    assert_true(mediatype_valid(SPAN("Application/vnd.Example+json")));
    assert_true(mediatype_valid(SPAN("a/b")));
}

static void rejects_everything_else(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",       "text",  "/html", "text/", "a/b/c", "a//b", "a /b", "a/b;c", "text/html\r\nX: 1",
        "a/\x80", "a/\"b", "a/(b)", "a/b\t"
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(mediatype_valid(span_text(texts[i])));
    assert_false(mediatype_valid(SPAN("a/b\0")));
}

static void bounds_the_length(void **state)
{
    (void)state;
    char type[MEDIATYPE_MAX + 1];
    memset(type, 'x', sizeof(type));
    type[4] = '/';
    assert_true(mediatype_valid(span_of(type, MEDIATYPE_MAX)));
    assert_false(mediatype_valid(span_of(type, MEDIATYPE_MAX + 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_two_tokens_with_a_slash),
        cmocka_unit_test(rejects_everything_else),
        cmocka_unit_test(bounds_the_length),
    };
    return cmocka_run_group_tests_name("base/mediatype", tests, NULL, NULL);
}
