/* SPDX-License-Identifier: MIT
 *
 * Header blocks of a client: requests that our own server reads, and responses by the rules of
 * RFC 9113 section 8.
 */
#include "http2/client.h"

#include "http2/request.h"
#include "support/guard.h"
#include "support/hpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { ROOM = 8192 };

static char storage[HTTP2_REQUEST_STORAGE];
static struct http2_table table;

static int begin_server(void **state)
{
    (void)state;
    http2_table_init(&table, http2_request_keeps);
    return 0;
}

static int begin_client(void **state)
{
    (void)state;
    http2_table_init(&table, http2_client_keeps);
    return 0;
}

static int end_table(void **state)
{
    (void)state;
    hpack_free(&table);
    return 0;
}

/* ---- requests ---- */

#define LINES \
    "Host: a.example:8443\r\nUser-Agent: weir-load\r\nAccept-Encoding: gzip, deflate\r\n" \
    "Accept: */*\r\nConnection: close\r\nX-Own: 1\r\nAuthorization: Basic eDp5\r\n\r\n"
#define TEXT(path) \
    "GET " path " HTTP/1.1\r\nhost: a.example:8443\r\nuser-agent: weir-load\r\n" \
    "accept-encoding: gzip, deflate\r\naccept: */*\r\nauthorization: Basic eDp5\r\n\r\n"

/* Writes the block, and checks that the server reads `text`. Returns the bytes of the block. */
static size_t send_request(struct span head, enum http2_client_form form, const char *text,
                           size_t *ret_needed)
{
    struct http2_request request;
    enum http2_request_result result;
    char bytes[ROOM];
    struct buf block = buf_over(bytes, sizeof(bytes));

    *ret_needed = http2_client_add_request(&block, head, SPAN("https"), form);
    assert_false(block.overflow);
    http2_request_begin(&request, &table, buf_span(&block), storage, false);
    while ((result = http2_request_decode(&request)) == HTTP2_REQUEST_GROW)
        hpack_grow(&table, request.reader.needed);
    assert_int_equal(result, HTTP2_REQUEST_DECODED);
    assert_int_equal(request.scheme, HTTP2_SCHEME_HTTPS);
    if (!span_equal(request.text, span_text(text)))
        fail_msg("`%.*s` is not `%s`", (int)request.text.len, request.text.at, text);
    return block.len;
}

static void a_later_request_refers_to_the_first(void **state)
{
    (void)state;
    size_t needed, same;
    size_t first =
        send_request(SPAN("GET /x HTTP/1.1\r\n" LINES), HTTP2_CLIENT_FIRST, TEXT("/x"), &needed);
    assert_int_equal(table.count, 4); /* authority, user-agent, accept, x-own */
    assert_int_equal(table.size, needed);
    size_t later =
        send_request(SPAN("GET /y?z HTTP/1.1\r\n" LINES), HTTP2_CLIENT_LATER, TEXT("/y?z"), &same);
    assert_int_equal(same, needed);
    assert_true(later < first);
    assert_int_equal(table.count, 4);
    (void)send_request(SPAN("GET / HTTP/1.1\r\n" LINES), HTTP2_CLIENT_LATER, TEXT("/"), &same);
}

static void rfc_7541_section_7_1_3_credentials_stay_out_of_the_table(void **state)
{
    (void)state;
    char bytes[ROOM];
    struct buf block = buf_over(bytes, sizeof(bytes));
    (void)http2_client_add_request(
        &block, SPAN("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eDp5\r\n\r\n"),
        SPAN("https"), HTTP2_CLIENT_FIRST);
    /* The mark of a literal that is never indexed, and the index 23 of the name. */
    assert_non_null(memmem(bytes, block.len, "\x1f\x08", 2));
}

static void a_plain_request_needs_no_table(void **state)
{
    (void)state;
    size_t needed;
    (void)send_request(SPAN("GET /x HTTP/1.1\r\n" LINES), HTTP2_CLIENT_PLAIN, TEXT("/x"), &needed);
    assert_int_equal(table.count, 0);
    assert_true(needed > 0);
}

static void writes_other_methods(void **state)
{
    (void)state;
    size_t needed;
    (void)send_request(SPAN("HEAD /index.html HTTP/1.1\r\nHost: a\r\n\r\n"), HTTP2_CLIENT_FIRST,
                       "HEAD /index.html HTTP/1.1\r\nhost: a\r\n\r\n", &needed);
    (void)send_request(SPAN("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), HTTP2_CLIENT_LATER,
                       "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", &needed);
}

static void records_an_overflow(void **state)
{
    (void)state;
    char line[2 * HTTP_FIELD_NAME_MAX];
    char bytes[ROOM];
    struct buf block = buf_over(bytes, 20);
    (void)http2_client_add_request(&block, SPAN("GET /x HTTP/1.1\r\n" LINES), SPAN("https"),
                                   HTTP2_CLIENT_FIRST);
    assert_true(block.overflow);
    block = buf_over(bytes, sizeof(bytes));
    int len = snprintf(line, sizeof(line), "GET / HTTP/1.1\r\nHost: a\r\n%0*d: x\r\n\r\n",
                       HTTP_FIELD_NAME_MAX + 1, 0);
    (void)http2_client_add_request(&block, span_of(line, (size_t)len), SPAN("https"),
                                   HTTP2_CLIENT_FIRST);
    assert_true(block.overflow);
}

/* ---- responses ---- */

static enum http2_client_result read_block(struct span block, bool trailers,
                                           struct http2_client_response *response)
{
    struct guard guard;
    enum http2_client_result result;

    http2_client_begin(response, &table, guard_copy(&guard, block), trailers);
    while ((result = http2_client_decode(response, storage)) == HTTP2_CLIENT_GROW)
        hpack_grow(&table, response->reader.needed);
    guard_done(&guard);
    return result;
}

static enum http2_client_result read_fields(const char *fields, bool trailers,
                                            struct http2_client_response *response)
{
    char block[ROOM];
    size_t len = hpack_literals(span_text(fields), block, sizeof(block));
    return read_block(span_of(block, len), trailers, response);
}

static void reads_status_and_length(void **state)
{
    (void)state;
    struct http2_client_response response;
    assert_int_equal(read_fields(":status: 206\ncontent-length: 12\nserver: x\n", false, &response),
                     HTTP2_CLIENT_DECODED);
    assert_int_equal(response.status, 206);
    assert_true(response.content_length == 12);
    assert_int_equal(read_fields(":status: 103\nlink: x\n", false, &response),
                     HTTP2_CLIENT_DECODED);
    assert_int_equal(response.status, 103);
    assert_true(response.content_length == HTTP2_CLIENT_NO_LENGTH);
    assert_int_equal(read_fields("x-sum: 1\n", true, &response), HTTP2_CLIENT_DECODED);
    assert_int_equal(response.status, 0);
}

static void reads_a_response_from_the_dynamic_table(void **state)
{
    (void)state;
    struct http2_client_response response;
    char block[64];
    size_t len = hpack_bytes("48 03 323039 5c 02 3132 76 01 78", block, sizeof(block));
    assert_int_equal(read_block(span_of(block, len), false, &response), HTTP2_CLIENT_DECODED);
    assert_int_equal(response.status, 209);
    len = hpack_bytes("c0 bf be", block, sizeof(block));
    assert_int_equal(read_block(span_of(block, len), false, &response), HTTP2_CLIENT_DECODED);
    assert_int_equal(response.status, 209);
    assert_true(response.content_length == 12);
    assert_int_equal(http2_table_used(&table), 3 * 8 + 3 + 2);
}

static void rfc_9113_section_8_3_2_refuses_malformed_responses(void **state)
{
    (void)state;
    struct http2_client_response response;
    static const char *const malformed[] = {
        "",
        "server: x\n",
        "server: x\n:status: 200\n",
        ":status: 200\n:status: 200\n",
        ":status: 20\n",
        ":status: 099\n",
        ":status: 600\n",
        ":status: 2 0\n",
        ":status: 200\n:path: /\n",
        ":status: 200\n:x: /\n",
        ":status: 200\nServer: x\n",
        ":status: 200\nconnection: close\n",
        ":status: 200\ntransfer-encoding: chunked\n",
        ":status: 200\nx-a: \x01\n",
        ":status: 200\ncontent-length: x\n",
        ":status: 200\ncontent-length: 1\ncontent-length: 1\n",
    };
    for (size_t i = 0; i < COUNT(malformed); i++)
        if (read_fields(malformed[i], false, &response) != HTTP2_CLIENT_MALFORMED)
            fail_msg("`%s`", malformed[i]);
    assert_int_equal(read_fields(":status: 200\n", true, &response), HTTP2_CLIENT_MALFORMED);
}

static void names_a_broken_block(void **state)
{
    (void)state;
    struct http2_client_response response;
    assert_int_equal(read_block(SPAN("\xbe"), false, &response), HTTP2_CLIENT_BROKEN);
    assert_int_equal(read_block(SPAN("\x3f\xff\xff\x03\x88"), false, &response),
                     HTTP2_CLIENT_BROKEN);
}

#define SERVER_TEST(function) cmocka_unit_test_setup_teardown(function, begin_server, end_table)
#define CLIENT_TEST(function) cmocka_unit_test_setup_teardown(function, begin_client, end_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_later_request_refers_to_the_first),
        SERVER_TEST(rfc_7541_section_7_1_3_credentials_stay_out_of_the_table),
        SERVER_TEST(a_plain_request_needs_no_table),
        SERVER_TEST(writes_other_methods),
        SERVER_TEST(records_an_overflow),
        CLIENT_TEST(reads_status_and_length),
        CLIENT_TEST(reads_a_response_from_the_dynamic_table),
        CLIENT_TEST(rfc_9113_section_8_3_2_refuses_malformed_responses),
        CLIENT_TEST(names_a_broken_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
