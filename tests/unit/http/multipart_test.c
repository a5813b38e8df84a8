/* SPDX-License-Identifier: MIT
 *
 * The framing of a multipart/byteranges body, byte for byte.
 */
#include "http/multipart.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct http_ranges two = { .range = { { 0, 1 }, { 990, 10 } }, .count = 2 };

static void assert_next(struct http_multipart *body, const char *framing, uint64_t first,
                        uint64_t len)
{
    char storage[HTTP_MULTIPART_FRAMING_MAX];
    struct buf text = buf_over(storage, sizeof(storage));
    struct http_range range = { 7, 7 };
    assert_true(http_multipart_next(body, &text, &range));
    if (!span_equal(buf_span(&text), span_text(framing)))
        fail_msg("expected `%s`, got `%.*s`", framing, (int)text.len, text.at);
    assert_int_equal(range.first, first);
    assert_int_equal(range.len, len);
}

static void frames_two_parts(void **state)
{
    (void)state;
    struct http_multipart body = http_multipart_begin(&two, SPAN("text/plain"), 1000, 0xbeef);
    assert_next(&body,
                "--weir000000000000beef\r\n"
                "Content-Type: text/plain\r\n"
                "Content-Range: bytes 0-0/1000\r\n"
                "\r\n",
                0, 1);
    assert_next(&body,
                "\r\n--weir000000000000beef\r\n"
                "Content-Type: text/plain\r\n"
                "Content-Range: bytes 990-999/1000\r\n"
                "\r\n",
                990, 10);
    assert_next(&body, "\r\n--weir000000000000beef--\r\n", 0, 0);
    char byte;
    struct buf text = buf_over(&byte, 1);
    struct http_range range;
    assert_false(http_multipart_next(&body, &text, &range));
    assert_int_equal(text.len, 0);
}

static void names_its_boundary_in_the_content_type(void **state)
{
    (void)state;
    char storage[128];
    struct buf head = buf_over(storage, sizeof(storage));
    struct http_multipart body = http_multipart_begin(&two, SPAN("text/plain"), 1000, 1);
    http_multipart_add_type(&body, &head);
    assert_true(
        span_equal(buf_span(&head),
                   SPAN("Content-Type: multipart/byteranges; boundary=weir0000000000000001\r\n")));
}

static void knows_its_length_at_any_time(void **state)
{
    (void)state;
    enum { FRAMING = 24 + 26 + 31 + 2 + 26 + 26 + 35 + 2 + 28 };
    struct http_multipart body = http_multipart_begin(&two, SPAN("text/plain"), 1000, 0xbeef);
    assert_int_equal(http_multipart_length(&body), FRAMING + 1 + 10);
    while (body.left > 0) {
        char storage[HTTP_MULTIPART_FRAMING_MAX];
        struct buf text = buf_over(storage, sizeof(storage));
        struct http_range range;
        assert_true(http_multipart_next(&body, &text, &range));
        assert_int_equal(http_multipart_length(&body), FRAMING + 1 + 10);
    }
}

static void has_ended_when_zeroed(void **state)
{
    (void)state;
    struct http_multipart body = { 0 };
    struct buf text = buf_over(NULL, 0);
    struct http_range range;
    assert_false(http_multipart_next(&body, &text, &range));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_two_parts),
        cmocka_unit_test(names_its_boundary_in_the_content_type),
        cmocka_unit_test(knows_its_length_at_any_time),
        cmocka_unit_test(has_ended_when_zeroed),
    };
    return cmocka_run_group_tests_name("http/multipart", tests, NULL, NULL);
}
