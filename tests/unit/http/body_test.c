/* SPDX-License-Identifier: MIT
 *
 * Body framing and the chunked coding, case by case. tests/property/body_test.c tests that the
 * split of the input makes no difference.
 */
#include "http/body.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Parses `POST / HTTP/1.`, `minor` and the fields, and returns the result of http_body_begin. */
static int begin(struct http_body *ret_body, char minor, const char *fields)
{
    char head[512];
    (void)snprintf(head, sizeof(head), "POST / HTTP/1.%c\r\nHost: a\r\n%s\r\n", minor, fields);

    struct guard guard;
    struct span bytes = guard_text(&guard, head);
    struct http_request request = { 0 };
    enum http_status status;
    assert_int_equal(http_request_parse(&request, bytes, &status), HTTP_PARSED);
    int result = http_body_begin(ret_body, &request, bytes.at);
    guard_done(&guard);
    return result;
}

static void decides_the_framing(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        enum http_body_kind kind;
        uint64_t length;
    } rows[] = {
        { "", HTTP_BODY_NONE, 0 },
        { "Content-Length: 0\r\n", HTTP_BODY_NONE, 0 },
        { "Content-Length: 5\r\n", HTTP_BODY_LENGTH, 5 },
        { "Content-Length: \t5 \r\n", HTTP_BODY_LENGTH, 5 },
        { "Content-Length: 005\r\n", HTTP_BODY_LENGTH, 5 },
        { "Content-Length: 1048576\r\n", HTTP_BODY_LENGTH, HTTP_BODY_MAX },
        { "Content_Length: 5\r\n", HTTP_BODY_NONE, 0 },
        { "Transfer-Encoding: chunked\r\n", HTTP_BODY_CHUNKED, 0 },
        { "transfer-encoding: CHUNKED\r\n", HTTP_BODY_CHUNKED, 0 },
        { "Transfer-Encoding: , chunked ,\r\n", HTTP_BODY_CHUNKED, 0 },
        { "Transfer_Encoding: chunked\r\n", HTTP_BODY_NONE, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_body body;
        int status = begin(&body, '1', rows[i].fields);
        if (status != 0 || body.kind != rows[i].kind || body.remaining != rows[i].length)
            fail_msg("`%s`: status %d, kind %d", rows[i].fields, status, body.kind);
        assert_int_equal(body.total, 0);
    }
}

static void refuses_framing_that_could_be_read_in_two_ways(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int status;
    } rows[] = {
        { "Content-Length: 5\r\nContent-Length: 6\r\n", 400 },
        { "Content-Length: 5\r\nContent-Length: 5\r\n", 400 },
        { "Content-Length: 5, 6\r\n", 400 },
        { "Content-Length: 5, 5\r\n", 400 },
        { "Content-Length: -1\r\n", 400 },
        { "Content-Length: +5\r\n", 400 },
        { "Content-Length: 0x5\r\n", 400 },
        { "Content-Length: 1_0\r\n", 400 },
        { "Content-Length: 5x\r\n", 400 },
        { "Content-Length: 5 5\r\n", 400 },
        { "Content-Length:\r\n", 400 },
        { "Content-Length: 1e3\r\n", 400 },
        { "Content-Length: \xd9\xa3\r\n", 400 },
        { "Content-Length: 18446744073709551616\r\n", 400 },
        { "Content-Length: 99999999999999999999\r\n", 400 },
        { "Content-Length: 9223372036854775808\r\n", 413 },
        { "Content-Length: 1000000000\r\n", 413 },
        { "Content-Length: 1048577\r\n", 413 },
        { "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400 },
        { "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400 },
        { "Transfer-Encoding:\r\nContent-Length: 5\r\n", 400 },
        { "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", 400 },
        { "Transfer-Encoding:\r\n", 400 },
        { "Transfer-Encoding: ,\r\n", 400 },
        { "Transfer-Encoding: chunked, gzip\r\n", 400 },
        { "Transfer-Encoding: chunked, chunked\r\n", 400 },
        { "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400 },
        { "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400 },
        { "Transfer-Encoding: gzip, chunked, gzip\r\n", 400 },
        { "Transfer-Encoding: chunked;a=b\r\n", 400 },
        { "Transfer-Encoding: \"chunked\"\r\n", 400 },
        { "Transfer-Encoding: \xa0"
          "chunked\r\n",
          400 },
        { "Transfer-Encoding: chunked chunked\r\n", 400 },
        { "Transfer-Encoding: chunked chunked, chunked\r\n", 400 },
        { "Transfer-Encoding: gzip\r\n", 501 },
        { "Transfer-Encoding: identity\r\n", 501 },
        { "Transfer-Encoding: xchunked\r\n", 501 },
        { "Transfer-Encoding: pigeons;speed=1\r\n", 501 },
        { "Transfer-Encoding: gzip, chunked\r\n", 501 },
        { "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct http_body body = { .total = 77 };
        int status = begin(&body, '1', rows[i].fields);
        if (status != rows[i].status)
            fail_msg("`%s`: expected %d, got %d", rows[i].fields, rows[i].status, status);
        assert_int_equal(body.total, 77);
    }
}

static void refuses_transfer_encoding_in_http_1_0(void **state)
{
    (void)state;
    struct http_body body;
    assert_int_equal(begin(&body, '0', "Transfer-Encoding: chunked\r\n"), 400);
    assert_int_equal(begin(&body, '0', "Content-Length: 5\r\n"), 0);
    assert_int_equal(body.kind, HTTP_BODY_LENGTH);
}

static void discards_a_body_of_known_length_and_no_byte_more(void **state)
{
    (void)state;
    struct http_body body;
    size_t consumed = 99;
    enum http_status status;

    assert_int_equal(begin(&body, '1', "Content-Length: 5\r\n"), 0);
    assert_int_equal(http_body_discard(&body, SPAN("hel"), &consumed, &status), HTTP_BODY_MORE);
    assert_int_equal(consumed, 3);
    assert_int_equal(http_body_discard(&body, SPAN(""), &consumed, &status), HTTP_BODY_MORE);
    assert_int_equal(consumed, 0);
    assert_int_equal(http_body_discard(&body, SPAN("loGET"), &consumed, &status), HTTP_BODY_DONE);
    assert_int_equal(consumed, 2);
    assert_int_equal(body.total, 5);
}

static void takes_no_byte_when_there_is_no_body(void **state)
{
    (void)state;
    struct http_body body = { 0 };
    size_t consumed = 99;
    enum http_status status;

    assert_int_equal(http_body_discard(&body, SPAN("GET"), &consumed, &status), HTTP_BODY_DONE);
    assert_int_equal(consumed, 0);
}

enum { DONE = 0, MORE = 1 };

/* Discards `bytes` in one call as a chunked body. Returns DONE when all but `behind` bytes were
 * consumed, MORE, or the status. */
static int discard(struct span bytes, size_t behind, uint64_t *ret_total)
{
    struct http_body body;
    struct guard guard;
    struct span copy = guard_copy(&guard, bytes);
    size_t consumed = SIZE_MAX;
    enum http_status status = HTTP_OK;
    int result = MORE;

    assert_int_equal(begin(&body, '1', "Transfer-Encoding: chunked\r\n"), 0);
    switch (http_body_discard(&body, copy, &consumed, &status)) {
    case HTTP_BODY_DONE:
        assert_int_equal(consumed, bytes.len - behind);
        result = DONE;
        break;
    case HTTP_BODY_MORE:
        assert_int_equal(consumed, bytes.len);
        break;
    case HTTP_BODY_FAILED:
        result = (int)status;
        break;
    }
    *ret_total = body.total;
    guard_done(&guard);
    return result;
}

static void discards_well_formed_chunks(void **state)
{
    (void)state;
    static const struct {
        struct span bytes;
        uint64_t total;
    } rows[] = {
        { SPAN("0\r\n\r\n"), 0 },
        { SPAN("5\r\nhello\r\n0\r\n\r\n"), 5 },
        { SPAN("A\r\n0123456789\r\n1\r\n\n\r\n000\r\n\r\n"), 11 },
        { SPAN("a\r\n\r\n0\r\n\r\n\r\n\0\r\n0\r\n\r\n"), 10 },
        { SPAN("00000000000000000000000000000000a\r\n0123456789\r\n0\r\n\r\n"), 10 },
        { SPAN("5;x=1\r\nhello\r\n0\r\n\r\n"), 5 },
        { SPAN("5;x\r\nhello\r\n0;y;z=\"\"\r\n\r\n"), 5 },
        { SPAN("5;x=\"a;b\"\r\nhello\r\n0\r\n\r\n"), 5 },
        { SPAN("5;x=\"a\\\"b\\\\ \xff\t\"\r\nhello\r\n0\r\n\r\n"), 5 },
        { SPAN("5 ;\tx \t= \"y\" ; z=1\r\nhello\r\n0\r\n\r\n"), 5 },
        { SPAN("0\r\nX: y\r\nEmpty:\r\nZ:\t \"\\;=\xff \r\n\r\n"), 0 },
        { SPAN("0\r\nContent-Length: 5\r\n\r\n"), 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t total = 0;
        int result = discard(rows[i].bytes, 0, &total);
        if (result != DONE || total != rows[i].total)
            fail_msg("`%.*s`: %d, %llu bytes", (int)rows[i].bytes.len, rows[i].bytes.at, result,
                     (unsigned long long)total);
    }
}

static void leaves_the_bytes_behind_the_last_chunk(void **state)
{
    (void)state;
    uint64_t total = 0;
    assert_int_equal(discard(SPAN("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), 16, &total), DONE);
    assert_int_equal(total, 1);
}

static void refuses_malformed_chunks(void **state)
{
    (void)state;
    static const struct {
        struct span bytes;
        int result;
    } rows[] = {
        { SPAN("5;\r\nhello\r\n"), 400 },
        { SPAN("5;b[=x\r\n"), 400 },
        { SPAN("5;\0x\r\n"), 400 },
        { SPAN("5;=x\r\n"), 400 },
        { SPAN("5;x=\r\n"), 400 },
        { SPAN("5;x=\"a\r\n"), 400 },
        { SPAN("5;x=\"a\"b\r\n"), 400 },
        { SPAN("5;x=\"a\\\r\n"), 400 },
        { SPAN("5;x=\"a\\\x01\"\r\n"), 400 },
        { SPAN("5;x \r\n"), 400 },
        { SPAN("5;x=a \r\n"), 400 },
        { SPAN("5;x=a b\r\n"), 400 },
        { SPAN("0x5\r\n"), 400 },
        { SPAN("+5\r\n"), 400 },
        { SPAN("-1\r\n"), 400 },
        { SPAN(" 5\r\n"), 400 },
        { SPAN("5 \r\n"), 400 },
        { SPAN("5 5\r\n"), 400 },
        { SPAN("1_0\r\n"), 400 },
        { SPAN("5z\r\n"), 400 },
        { SPAN("\r\n"), 400 },
        { SPAN("FFFFFFFFFFFFFFFF0\r\n"), 413 },
        { SPAN("FFFFFFFFFFFFFFFF\r\n"), 413 },
        { SPAN("8000000000000000\r\n"), 413 },
        { SPAN("10000000000000005\r\n"), 413 },
        { SPAN("100001"), 413 },
        { SPAN("100000\r\n"), MORE },
        { SPAN("1\r\nx\r\n100000"), 413 },
        { SPAN("5\nhello"), 400 },
        { SPAN("5\r\nhello\r\n0\n"), 400 },
        { SPAN("0\n\n"), 400 },
        { SPAN("0\r\n\n"), 400 },
        { SPAN("5;\n"), 400 },
        { SPAN("5;x\n"), 400 },
        { SPAN("5\rX"), 400 },
        { SPAN("5;a\rX"), 400 },
        { SPAN("5\r\r;ABCD"), 400 },
        { SPAN("5\r\nhello!!\r\n0\r\n"), 400 },
        { SPAN("5\r\nhello0\r\n\r\n"), 400 },
        { SPAN("5\r\nhello\n0\r\n\r\n"), 400 },
        { SPAN("5\r\nhello\rX"), 400 },
        { SPAN("0\r\n X: folded\r\n"), 400 },
        { SPAN("0\r\nX : y\r\n"), 400 },
        { SPAN("0\r\nX\r\n"), 400 },
        { SPAN("0\r\n: y\r\n"), 400 },
        { SPAN("0\r\nX: y\n"), 400 },
        { SPAN("0\r\nX: \0\r\n"), 400 },
        { SPAN("0\r\nX: y\r\r\n"), 400 },
        { SPAN("0\r\n\rX"), 400 },
        { SPAN("5\r\nhel"), MORE },
        { SPAN("0\r\n"), MORE },
        { SPAN("0\r\n\r"), MORE },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t total;
        int result = discard(rows[i].bytes, 0, &total);
        if (result != rows[i].result)
            fail_msg("row %zu, `%.*s`: expected %d, got %d", i, (int)rows[i].bytes.len,
                     rows[i].bytes.at, rows[i].result, result);
    }
}

static void bounds_chunk_lines_and_trailers(void **state)
{
    (void)state;
    static char bytes[64 * 1024];
    uint64_t total;

    memcpy(bytes, "5;", 2);
    memset(bytes + 2, 'x', sizeof(bytes) - 2);
    assert_int_equal(discard(span_of(bytes, HTTP_CHUNK_LINE_MAX), 0, &total), MORE);
    assert_int_equal(discard(span_of(bytes, HTTP_CHUNK_LINE_MAX + 1), 0, &total), 400);
    memcpy(bytes + HTTP_CHUNK_LINE_MAX - 2, "\r\n", 2);
    assert_int_equal(discard(span_of(bytes, HTTP_CHUNK_LINE_MAX), 0, &total), MORE);
    memset(bytes, '0', sizeof(bytes));
    assert_int_equal(discard(span_of(bytes, HTTP_CHUNK_LINE_MAX + 1), 0, &total), 400);
    memcpy(bytes, "1\r\nx\r\n", 6); /* a second line has the same limit */
    assert_int_equal(discard(span_of(bytes, 6 + HTTP_CHUNK_LINE_MAX), 0, &total), MORE);
    assert_int_equal(discard(span_of(bytes, 6 + HTTP_CHUNK_LINE_MAX + 1), 0, &total), 400);

    size_t len = 3;
    memcpy(bytes, "0\r\n", 3);
    for (size_t i = 0; i < HTTP_TRAILERS_MAX / 8 - 1; i++, len += 8)
        memcpy(bytes + len, "X: 345\r\n", 8);
    memcpy(bytes + len, "\r\n", 2);
    assert_int_equal(discard(span_of(bytes, len + 2), 0, &total), DONE);
    memcpy(bytes + len, "X: 345\r\n\r\n", 10);
    assert_int_equal(discard(span_of(bytes, len + 10), 0, &total), 400);
}

static void counts_the_body_over_all_chunks(void **state)
{
    (void)state;
    enum { CHUNKS = 100 * 1000 };
    struct http_body body;
    size_t consumed;
    enum http_status status;

    assert_int_equal(begin(&body, '1', "Transfer-Encoding: chunked\r\n"), 0);
    for (unsigned i = 0; i < CHUNKS; i++)
        assert_int_equal(http_body_discard(&body, SPAN("1\r\nx\r\n"), &consumed, &status),
                         HTTP_BODY_MORE);
    assert_int_equal(http_body_discard(&body, SPAN("0\r\n\r\nG"), &consumed, &status),
                     HTTP_BODY_DONE);
    assert_int_equal(consumed, 5);
    assert_int_equal(body.total, CHUNKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decides_the_framing),
        cmocka_unit_test(refuses_framing_that_could_be_read_in_two_ways),
        cmocka_unit_test(refuses_transfer_encoding_in_http_1_0),
        cmocka_unit_test(discards_a_body_of_known_length_and_no_byte_more),
        cmocka_unit_test(takes_no_byte_when_there_is_no_body),
        cmocka_unit_test(discards_well_formed_chunks),
        cmocka_unit_test(leaves_the_bytes_behind_the_last_chunk),
        cmocka_unit_test(refuses_malformed_chunks),
        cmocka_unit_test(bounds_chunk_lines_and_trailers),
        cmocka_unit_test(counts_the_body_over_all_chunks),
    };
    return cmocka_run_group_tests_name("http/body", tests, NULL, NULL);
}
