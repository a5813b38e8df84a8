/* SPDX-License-Identifier: MIT
 *
 * A cached head equals the result of parsing: for the same bytes, for bytes that differ in any
 * place, and for partial heads.
 */
#include "load/headcache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define HEAD \
    "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 17:00:00 GMT\r\nConnection: keep-alive\r\n" \
    "Content-Length: 5\r\n\r\n"

/* Parses `bytes` with and without the cache, in memory that ends where they end. */
static void is_as_read(struct load_headcache *headcache, uint32_t target, const char *bytes,
                       size_t len)
{
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    struct http_response known, read;
    memset(&known, 0x55, sizeof(known));
    memset(&read, 0, sizeof(read));
    enum http_parse expected = http_response_parse(&read, span_of(copy, len), false);
    assert_int_equal(load_headcache_parse(headcache, target, &known, span_of(copy, len), false),
                     expected);
    assert_int_equal(known.status, read.status);
    assert_int_equal(known.persists, read.persists);
    assert_int_equal(known.fault, read.fault);
    if (expected == HTTP_PARSED) {
        assert_int_equal(known.head_len, read.head_len);
        assert_int_equal(known.body.kind, read.body.kind);
        assert_int_equal(known.body.remaining, read.body.remaining);
    }
    free(copy);
}

static void equal_bytes_give_the_cached_head(void **state)
{
    (void)state;
    static struct load_headcache headcache;
    static const char head[] = HEAD "hello";
    for (unsigned turn = 0; turn < 3; turn++)
        for (size_t len = 1; len < sizeof(head); len++)
            is_as_read(&headcache, turn, head, len);
}

static void parses_a_head_that_differs_in_any_byte(void **state)
{
    (void)state;
    static struct load_headcache headcache;
    static const char head[] = HEAD;
    for (size_t i = 0; i < sizeof(head) - 1; i++) {
        for (unsigned with = 0; with < 256; with += 3) {
            char other[sizeof(head)];
            memcpy(other, head, sizeof(head));
            is_as_read(&headcache, 7, head, sizeof(head) - 1);
            other[i] = (char)with;
            is_as_read(&headcache, 7, other, sizeof(head) - 1);
        }
    }
}

static void keeps_targets_apart(void **state)
{
    (void)state;
    static struct load_headcache headcache;
    static const char *const heads[] = { HEAD, "HTTP/1.1 304 Not Modified\r\n\r\n",
                                         "HTTP/1.0 200 OK\r\n\r\nto the end",
                                         "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 2" };
    for (uint32_t i = 0; i < 200; i++) {
        const char *head = heads[i % 5];
        is_as_read(&headcache, i % 11, head, strlen(head));
    }
}

static void parses_a_head_that_is_too_long_to_cache(void **state)
{
    (void)state;
    static struct load_headcache headcache;
    char head[LOAD_HEADCACHE_MAX + 200] = "HTTP/1.1 200 OK\r\nX: ";
    size_t len = strlen(head);
    memset(head + len, 'x', LOAD_HEADCACHE_MAX);
    memcpy(head + len + LOAD_HEADCACHE_MAX, "\r\n\r\n", 5);
    for (unsigned i = 0; i < 2; i++)
        is_as_read(&headcache, 0, head, strlen(head));
    assert_int_equal(headcache.head[0].response.head_len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bytes_give_the_cached_head),
        cmocka_unit_test(parses_a_head_that_differs_in_any_byte),
        cmocka_unit_test(keeps_targets_apart),
        cmocka_unit_test(parses_a_head_that_is_too_long_to_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
