/* SPDX-License-Identifier: MIT
 *
 * The built-in error page is complete, within its limit, and makes no further request.
 */
#include "site/errorpage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool has(const char *page, size_t len, const char *text)
{
    return memmem(page, len, text, strlen(text)) != NULL;
}

static size_t render(char *out, size_t size, unsigned status, struct span reason,
                     struct span sentence)
{
    const struct site_errorpage content = { status, reason, sentence, 0x3f2a0123456789bc };
    return site_errorpage_render(out, size, &content);
}

static void says_what_happened_in_a_whole_page(void **state)
{
    char page[SITE_ERRORPAGE_MAX];
    (void)state;
    size_t len = render(page, sizeof(page), 404, SPAN("Not Found"),
                        SPAN("There is nothing at this address."));
    assert_true(len > 0 && len < sizeof(page));
    assert_true(span_starts(span_of(page, len), SPAN("<!doctype html>\n")));
    assert_true(span_ends(span_of(page, len), SPAN("</html>\n")));
    assert_true(has(page, len, "<title>404 Not Found</title>"));
    assert_true(has(page, len, "<h1>Not Found</h1>"));
    assert_true(has(page, len, "There is nothing at this address."));
    assert_true(has(page, len, "Request 3f2a0123456789bc"));
    assert_true(has(page, len, "charset=\"utf-8\""));
}

static void fetches_nothing(void **state)
{
    static const char *const words[] = { "http", "src=", "href=", "url(", "@import", "<script" };
    char page[SITE_ERRORPAGE_MAX];
    (void)state;
    size_t len = render(page, sizeof(page), 500, SPAN("Internal Server Error"), SPAN("x"));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_false(has(page, len, words[i]));
}

static void has_room_for_the_longest_texts(void **state)
{
    char page[SITE_ERRORPAGE_MAX];
    char sentence[160];
    (void)state;
    memset(sentence, 's', sizeof(sentence));
    size_t len = render(page, sizeof(page), 431, SPAN("Request Header Fields Too Large"),
                        span_of(sentence, sizeof(sentence)));
    assert_true(span_ends(span_of(page, len), SPAN("</html>\n")));
}

static void leaves_out_a_sentence_that_is_empty(void **state)
{
    char page[SITE_ERRORPAGE_MAX];
    (void)state;
    size_t len = render(page, sizeof(page), 404, SPAN("Not Found"), SPAN(""));
    assert_false(has(page, len, "class=\"why\""));
}

static void writes_no_byte_beyond_small_storage(void **state)
{
    (void)state;
    for (size_t size = 0; size < SITE_ERRORPAGE_MAX; size += 7) {
        char *page = malloc(size + 1); /* a heap block, for the sanitizer's sake */
        assert_non_null(page);
        page[size] = '#';
        assert_true(render(page, size, 404, SPAN("Not Found"), SPAN("x")) <= size);
        assert_int_equal(page[size], '#');
        free(page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_happened_in_a_whole_page),
        cmocka_unit_test(fetches_nothing),
        cmocka_unit_test(has_room_for_the_longest_texts),
        cmocka_unit_test(leaves_out_a_sentence_that_is_empty),
        cmocka_unit_test(writes_no_byte_beyond_small_storage),
    };
    return cmocka_run_group_tests_name("site/errorpage", tests, NULL, NULL);
}
