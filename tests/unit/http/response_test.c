/* SPDX-License-Identifier: MIT
 *
 * Response heads and the framing of their bodies, one by one. tests/property/response_test.c
 * tests that the split of the input makes no difference.
 */
#include "http/response.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static enum http_parse parse(struct http_response *response, const char *text, bool head_method)
{
    struct guard guard;
    struct span bytes = guard_text(&guard, text);
    *response = (struct http_response){ 0 };
    enum http_parse result = http_response_parse(response, bytes, head_method);
    guard_done(&guard);
    return result;
}

static void reads_status_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned status, minor;
        bool persists;
    } rows[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 1, true },
        { "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200, 1, true },
        { "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, 1, true },
        { "HTTP/1.1 404 Not \xe4 Found\r\nContent-Length: 0\r\n\r\n", 404, 1, true },
        { "HTTP/1.9 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 1, true },
        { "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, 0, false },
        { "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n", 200, 0, true },
        { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", 200, 1, false },
        { "HTTP/1.1 599 x\r\ncontent-length:0\r\nConnection:keep-alive\r\nCONNECTION: "
          "close\r\n\r\n",
          599, 1, false },
        { "HTTP/1.1 200 OK\r\n\r\n", 200, 1, false },
        { "HTTP/1.1 204 No Content\r\n\r\n", 204, 1, true },
        { "HTTP/1.1 100 Continue\r\n\r\n", 100, 1, true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_response r;
        if (parse(&r, rows[i].text, false) != HTTP_PARSED || r.status != rows[i].status ||
            r.minor != rows[i].minor || r.persists != rows[i].persists)
            fail_msg("`%s`: %u %u %d", rows[i].text, r.status, r.minor, r.persists);
        assert_int_equal(r.head_len, strlen(rows[i].text));
        assert_int_equal(http_response_is_interim(&r), rows[i].status == 100);
    }
}

static void decides_the_framing(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        bool head_method;
        enum http_body_kind kind;
        uint64_t length;
    } rows[] = {
        { "200 OK\r\nContent-Length: 5\r\n", false, HTTP_BODY_LENGTH, 5 },
        { "200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n", false, HTTP_BODY_LENGTH, 5 },
        { "200 OK\r\nContent-Length: 0\r\n", false, HTTP_BODY_NONE, 0 },
        { "200 OK\r\nContent-Length: 99999999999\r\n", false, HTTP_BODY_LENGTH, 99999999999 },
        { "200 OK\r\nContent-Length: 5\r\n", true, HTTP_BODY_NONE, 0 },
        { "304 Not Modified\r\nContent-Length: 5\r\n", false, HTTP_BODY_NONE, 0 },
        { "204 No Content\r\nContent-Length: 5\r\n", false, HTTP_BODY_NONE, 0 },
        { "103 Early Hints\r\nContent-Length: 5\r\n", false, HTTP_BODY_NONE, 0 },
        { "200 OK\r\nX: 5\r\n", false, HTTP_BODY_CLOSE, 0 },
        { "200 OK\r\nX: 5\r\n", true, HTTP_BODY_NONE, 0 },
        { "200 OK\r\nTransfer-Encoding: chunked\r\n", false, HTTP_BODY_CHUNKED, 0 },
        { "200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: , Chunked ,\r\n", false,
          HTTP_BODY_CHUNKED, 0 },
        { "200 OK\r\nTransfer-Encoding: gzip\r\n", false, HTTP_BODY_CLOSE, 0 },
        { "304 x\r\nTransfer-Encoding: chunked\r\n", false, HTTP_BODY_NONE, 0 },
        { "200 OK\r\nContent_Length: 5\r\n", false, HTTP_BODY_CLOSE, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[256];
        struct http_response r;
        (void)snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nbody", rows[i].head);
        if (parse(&r, text, rows[i].head_method) != HTTP_PARSED || r.body.kind != rows[i].kind ||
            r.body.remaining != rows[i].length)
            fail_msg("`%s`: kind %d, %llu", text, r.body.kind, (unsigned long long)r.length);
        assert_int_equal(r.head_len, strlen(text) - 4);
        assert_true(r.persists || rows[i].kind == HTTP_BODY_CLOSE);
    }
}

static void refuses_malformed_heads_and_ambiguous_framing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum http_response_fault fault;
    } rows[] = {
        { "X", HTTP_RESPONSE_FORM },
        { "HTTX", HTTP_RESPONSE_FORM },
        { "http/1.1 200 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/2", HTTP_RESPONSE_FORM },
        { "HTTP/1.x 200 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1  200 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 20 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 600 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 099 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 2000 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 20\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\rX", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 O\x01K", HTTP_RESPONSE_FORM },
        { "\r\nHTTP/1.1 200 OK\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\nA : b\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\n: b\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\nabc\r\n", HTTP_RESPONSE_FORM },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nContent-Length:\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
          HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
          HTTP_RESPONSE_FRAMING },
        { "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_RESPONSE_FRAMING },
        { "HTTP/1.1 101 Switching Protocols\r\n\r\n", HTTP_RESPONSE_FRAMING },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_response r;
        if (parse(&r, rows[i].text, false) != HTTP_PARSE_FAILED || r.fault != rows[i].fault)
            fail_msg("`%s`: fault %d", rows[i].text, r.fault);
    }
}

static void bounds_the_head(void **state)
{
    (void)state;
    static char text[HTTP_RESPONSE_HEAD_MAX + 64];
    struct http_response r;
    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    assert_int_equal(parse(&r, text, false), HTTP_PARSE_FAILED);
    text[HTTP_RESPONSE_HEAD_MAX - 1] = 0;
    assert_int_equal(parse(&r, text, false), HTTP_PARSE_MORE);
    memcpy(text + HTTP_RESPONSE_HEAD_MAX - 4, "\r\n\r\n", 5);
    assert_int_equal(parse(&r, text, false), HTTP_PARSED);
    assert_int_equal(r.head_len, HTTP_RESPONSE_HEAD_MAX);
}

/* Reads a whole body. Returns the bytes of its data, or -1. */
static int read_body(const char *head, const char *body, char *out)
{
    struct http_response r;
    char text[512];
    (void)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%s\r\n", head);
    assert_int_equal(parse(&r, text, false), HTTP_PARSED);
    struct span rest = span_text(body), data;
    enum http_body_step step = HTTP_BODY_MORE;
    int len = 0;
    while (step == HTTP_BODY_MORE && rest.len > 0) {
        size_t consumed = 0;
        enum http_status status;
        step = http_body_read(&r.body, rest, &consumed, &data, &status);
        if (step == HTTP_BODY_FAILED)
            return -1;
        memcpy(out + len, data.at, data.len);
        len += (int)data.len;
        rest = span_skip(rest, consumed);
    }
    return len;
}

static void reads_bodies(void **state)
{
    (void)state;
    char out[512];
    assert_int_equal(read_body("Content-Length: 3\r\n", "abcdef", out), 3);
    assert_memory_equal(out, "abc", 3);
    assert_int_equal(read_body("", "abcdef", out), 6);
    assert_memory_equal(out, "abcdef", 6);
    const char *chunked = "Transfer-Encoding: chunked\r\n";
    assert_int_equal(
        read_body(chunked, "3;x=\"y\"\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\nHTTP", out), 5);
    assert_memory_equal(out, "abcde", 5);
    /* The body has no bound, but a size that overflows is refused. */
    assert_int_equal(read_body(chunked, "7fffffff\r\nabc", out), 3);
    assert_int_equal(read_body(chunked, "ffffffffffffffff\r\nabc", out), -1);
    assert_int_equal(read_body(chunked, "x\r\n", out), -1);
    assert_int_equal(read_body(chunked, "3\r\nabcd\r\n", out), -1);
    assert_int_equal(read_body(chunked, "3\nabc", out), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_status_lines),
        cmocka_unit_test(decides_the_framing),
        cmocka_unit_test(refuses_malformed_heads_and_ambiguous_framing),
        cmocka_unit_test(bounds_the_head),
        cmocka_unit_test(reads_bodies),
    };
    return cmocka_run_group_tests_name("response", tests, NULL, NULL);
}
