/* SPDX-License-Identifier: MIT
 *
 * The lines of a response head, byte for byte.
 */
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static char storage[512];

static void assert_text(const struct buf *head, const char *expected)
{
    assert_false(head->overflow);
    if (!span_equal(buf_span(head), span_text(expected)))
        fail_msg("expected `%s`, got `%.*s`", expected, (int)head->len, head->at);
}

static void writes_a_whole_head(void **state)
{
    (void)state;
    struct buf head = buf_over(storage, sizeof(storage));
    http_head_add_status(&head, HTTP_OK);
    http_head_add_date(&head, SPAN("Date"), 784111777);
    http_head_add_length(&head, 308);
    http_head_add_field(&head, SPAN("Content-Type"), SPAN("text/html"));
    http_head_end(&head, SPAN("Server: weir\r\n"));
    assert_text(&head, "HTTP/1.1 200 OK\r\n"
                       "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                       "Content-Length: 308\r\n"
                       "Content-Type: text/html\r\n"
                       "X-Content-Type-Options: nosniff\r\n"
                       "Server: weir\r\n"
                       "\r\n");
}

static void writes_the_validators_that_there_are(void **state)
{
    (void)state;
    static const struct {
        struct http_validators validators;
        const char *lines;
    } rows[] = {
        { { { "\"a\"", 3 }, 0 },
          "ETag: \"a\"\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n" },
        { { { "\"a\"", 3 }, -1 }, "ETag: \"a\"\r\n" },
        { { { NULL, 0 }, 784111777 }, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n" },
        { { { NULL, 0 }, -1 }, "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf head = buf_over(storage, sizeof(storage));
        http_head_add_validators(&head, rows[i].validators);
        assert_text(&head, rows[i].lines);
    }
}

static void writes_the_range_of_a_part_and_of_a_416(void **state)
{
    (void)state;
    struct buf head = buf_over(storage, sizeof(storage));
    http_head_add_content_range(&head, (struct http_range){ 0, 1 }, 1000);
    http_head_add_content_range(&head, (struct http_range){ 500, 500 }, UINT64_MAX);
    http_head_add_content_range(&head, (struct http_range){ 0, 0 }, 1000);
    assert_text(&head, "Content-Range: bytes 0-0/1000\r\n"
                       "Content-Range: bytes 500-999/18446744073709551615\r\n"
                       "Content-Range: bytes */1000\r\n");
}

static void reports_a_head_that_does_not_fit(void **state)
{
    (void)state;
    struct buf head = buf_over(storage, 40);
    http_head_add_status(&head, HTTP_OK);
    http_head_end(&head, SPAN(""));
    assert_true(head.overflow);
    assert_true(head.len <= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_whole_head),
        cmocka_unit_test(writes_the_validators_that_there_are),
        cmocka_unit_test(writes_the_range_of_a_part_and_of_a_416),
        cmocka_unit_test(reports_a_head_that_does_not_fit),
    };
    return cmocka_run_group_tests_name("http/head", tests, NULL, NULL);
}
