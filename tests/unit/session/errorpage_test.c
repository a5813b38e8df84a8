/* SPDX-License-Identifier: MIT
 *
 * The built-in error page is complete, within its limit, and makes no further request.
 */
#include "session/errorpage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    enum http_status status;
    const char *reason, *sentence;
} pages[] = {
#define STATUS(code, name, reason, sentence) { HTTP_##name, reason, sentence },
#include "http/status.def"
#undef STATUS
};

static char storage[SESSION_ERRORPAGE_MAX];

static struct span page_of(enum http_status status)
{
    struct buf page = buf_over(storage, sizeof(storage));
    session_errorpage_add(&page, status, 0x3f2a0123456789bc);
    assert_false(page.overflow);
    return buf_span(&page);
}

static bool has(struct span page, const char *text)
{
    return memmem(page.at, page.len, text, strlen(text)) != NULL;
}

static void each_page_has_the_announced_size_and_says_what_happened(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        char title[128];
        const struct span page = page_of(pages[i].status);
        assert_int_equal(page.len, session_errorpage_size(pages[i].status));
        assert_true(span_starts(page, SPAN("<!doctype html>\n")));
        assert_true(span_ends(page, SPAN("</html>\n")));
        snprintf(title, sizeof(title), "<title>%d %s</title>", pages[i].status, pages[i].reason);
        assert_true(has(page, title));
        assert_true(has(page, pages[i].sentence));
        assert_true(has(page, "Request 3f2a0123456789bc"));
        assert_true(has(page, "charset=\"utf-8\""));
    }
}

static void a_page_fetches_nothing(void **state)
{
    static const char *const words[] = { "http:", "src=", "href=", "url(", "@import", "<script" };
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        assert_false(has(page_of(HTTP_INTERNAL_SERVER_ERROR), words[i]));
}

static void a_page_is_not_cut_by_small_storage(void **state)
{
    struct buf page = buf_over(storage, session_errorpage_size(HTTP_NOT_FOUND) - 1);
    (void)state;
    session_errorpage_add(&page, HTTP_NOT_FOUND, 1);
    assert_true(page.overflow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_has_the_announced_size_and_says_what_happened),
        cmocka_unit_test(a_page_fetches_nothing),
        cmocka_unit_test(a_page_is_not_cut_by_small_storage),
    };
    return cmocka_run_group_tests_name("session/errorpage", tests, NULL, NULL);
}
