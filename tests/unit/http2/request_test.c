/* SPDX-License-Identifier: MIT
 *
 * Header blocks as requests: each rule of RFC 9113 section 8, the bounds, and the text that the
 * parser of HTTP/1.1 reads.
 */
#include "http2/request.h"

#include "http/request.h"
#include "http/target.h"
#include "http2/hpack.h"
#include "support/guard.h"
#include "support/hpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

enum { ROOM = 64 * 1024 };

static char storage[HTTP2_REQUEST_STORAGE];
static struct http2_table table;
static struct http2_request request;

static int begin_table(void **state)
{
    (void)state;
    http2_table_init(&table, http2_request_keeps);
    return 0;
}

static int end_table(void **state)
{
    (void)state;
    hpack_free(&table);
    return 0;
}

static enum http2_request_result decode_block(struct span block, bool trailers)
{
    struct guard guard;
    enum http2_request_result result;

    http2_request_begin(&request, &table, guard_copy(&guard, block), storage, trailers);
    while ((result = http2_request_decode(&request)) == HTTP2_REQUEST_GROW)
        hpack_grow(&table, request.reader.needed);
    guard_done(&guard);
    return result;
}

static enum http2_request_result decode(const char *fields)
{
    static char block[ROOM];
    return decode_block(span_of(block, hpack_literals(span_text(fields), block, sizeof(block))),
                        false);
}

static enum http2_request_result decode_trailers(const char *fields)
{
    static char block[ROOM];
    return decode_block(span_of(block, hpack_literals(span_text(fields), block, sizeof(block))),
                        true);
}

static void assert_decodes(const char *fields, const char *text)
{
    enum http2_request_result result = decode(fields);
    if (result != HTTP2_REQUEST_DECODED || !span_equal(request.text, span_text(text)))
        fail_msg("`%s`: %d, `%.*s`", fields, (int)result, (int)request.text.len, request.text.at);
}

static void assert_malformed(const char *fields)
{
    enum http2_request_result result = decode(fields);
    if (result != HTTP2_REQUEST_MALFORMED)
        fail_msg("`%s`: %d, `%.*s`", fields, (int)result, (int)request.text.len, request.text.at);
    assert_int_equal(request.text.len, 0);
    assert_int_equal(request.priority.len, 0);
}

#define GET  ":method: GET\n:scheme: https\n:authority: a.example\n:path: /x\n"
#define HEAD "GET /x HTTP/1.1\r\nhost: a.example\r\n"

/* ---- the text ---- */

static void writes_a_head_that_the_parser_reads(void **state)
{
    (void)state;
    struct http_request parsed = { 0 };
    enum http_status status;

    assert_decodes(GET "user-agent: test/1\naccept-encoding: br\nrange: bytes=0-1\n",
                   HEAD "user-agent: test/1\r\naccept-encoding: br\r\nrange: bytes=0-1\r\n\r\n");
    assert_int_equal(request.scheme, HTTP2_SCHEME_HTTPS);
    assert_true(request.content_length == HTTP2_REQUEST_NO_LENGTH);
    assert_int_equal(http_request_parse(&parsed, request.text, &status), HTTP_PARSED);
    assert_int_equal(parsed.head_len, request.text.len);
    assert_int_equal(parsed.method, HTTP_GET);
    assert_true(span_equal(http_request_field(&parsed, request.text.at, HTTP_FIELD_RANGE),
                           SPAN("bytes=0-1")));
}

static void writes_every_field_that_the_parser_reads(void **state)
{
    (void)state;
#define FIELD(name, text) text,
    static const char *const names[] = { HTTP_FIELDS(FIELD) };
#undef FIELD
    for (size_t i = 0; i < COUNT(names); i++) {
        char fields[200], line[64];
        bool of_connection = strcmp(names[i], "connection") == 0 ||
                             strcmp(names[i], "transfer-encoding") == 0;
        bool host = strcmp(names[i], "host") == 0, length = strcmp(names[i], "content-length") == 0;
        (void)snprintf(fields, sizeof(fields), GET "%s: %s\n", names[i], host ? "a.example" : "12");
        (void)snprintf(line, sizeof(line), "\r\n%s: 12\r\n", names[i]);
        enum http2_request_result result = decode(fields);
        assert_int_equal(result == HTTP2_REQUEST_MALFORMED, of_connection);
        bool written = request.text.len > 0 &&
                       memmem(request.text.at, request.text.len, line, strlen(line));
        if (written != !(of_connection || host || length))
            fail_msg("%s: %d", names[i], written);
        assert_true(!length || request.content_length == 12);
    }
}

static void reads_pseudo_fields_in_any_order(void **state)
{
    (void)state;
    static const char *const lines[] = { ":method: GET\n", ":scheme: https\n",
                                         ":authority: a.example\n", ":path: /x\n" };
    for (unsigned order = 0; order < 256; order++) {
        unsigned at[4] = { order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6 };
        if ((1u << at[0] | 1u << at[1] | 1u << at[2] | 1u << at[3]) != 15)
            continue;
        char fields[200];
        (void)snprintf(fields, sizeof(fields), "%s%s%s%saccept: */*\n", lines[at[0]], lines[at[1]],
                       lines[at[2]], lines[at[3]]);
        assert_decodes(fields, HEAD "accept: */*\r\n\r\n");
    }
}

static void drops_fields_that_the_server_does_not_read(void **state)
{
    (void)state;
    assert_decodes(GET "x-a: 1\nsec-fetch-mode: cors\naccept-language: en\nx-b: 2\n", HEAD "\r\n");
}

static void lends_the_priority_and_the_length(void **state)
{
    (void)state;
    assert_decodes(GET "priority: u=1, i\ncontent-length: 0012\n", HEAD "priority: u=1, i\r\n\r\n");
    assert_true(span_equal(request.priority, SPAN("u=1, i")));
    assert_true(request.content_length == 12);
    assert_decodes(GET "priority: u=1\npriority: u=5\n",
                   HEAD "priority: u=1\r\npriority: u=5\r\n\r\n");
    assert_true(span_equal(request.priority, SPAN("u=5")));
}

static void knows_a_navigation_without_writing_its_field(void **state)
{
    (void)state;
    assert_decodes(GET "sec-fetch-mode: navigate\nx-b: 2\n", HEAD "\r\n");
    assert_true(request.navigates);
    assert_decodes(GET "sec-fetch-mode: no-cors\n", HEAD "\r\n");
    assert_false(request.navigates);
    assert_decodes(GET "sec-fetch-dest: navigate\n", HEAD "\r\n");
    assert_false(request.navigates);
}

static void knows_a_navigation_from_the_dynamic_table(void **state)
{
    (void)state;
    char block[200];
    size_t len = hpack_bytes("82 87 41 09 612e 6578 616d 706c 65 04 02 2f78"
                             "40 0e 7365 632d 6665 7463 682d 6d6f 6465 08 6e61 7669 6761 7465",
                             block, sizeof(block));
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
        assert_true(request.navigates);
        len = hpack_bytes("82 87 bf 04 02 2f78 be", block, sizeof(block));
    }
}

/* Fields of the dynamic table, and values that the table does not keep. */
static void reads_the_same_request_from_the_dynamic_table(void **state)
{
    (void)state;
    char block[200];
    size_t len = hpack_bytes("82 87 41 09 612e 6578 616d 706c 65 04 02 2f78"
                             "7a 06 7465 7374 2f31 60 03 613d 62 40 01 78 01 79",
                             block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
    assert_true(span_equal(request.text, SPAN(HEAD "user-agent: test/1\r\n\r\n")));
    for (unsigned round = 0; round < 3; round++) {
        len = hpack_bytes("82 87 c1 04 02 2f78 bf be c0", block, sizeof(block));
        assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
        assert_true(span_equal(request.text, SPAN(HEAD "user-agent: test/1\r\n\r\n")));
    }
    assert_int_equal(http2_table_used(&table), 4 * 8 + 9 + 6);
}

/* ---- RFC 9113 section 8.2.1 ---- */

static void rfc_9113_section_8_2_1_field_names(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char fields[200], block[300];
        bool lower = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                     (byte > 0 && strchr("!#$%&'*+-.^_`|~", (int)byte));
        /* Behind another byte, so that no name is a pseudo-header field. */
        size_t len = (size_t)snprintf(fields, sizeof(fields), GET "x?y: 1\n");
        len = hpack_literals(span_of(fields, len), block, sizeof(block));
        char *name = memmem(block, len, "x?y", 3);
        assert_non_null(name);
        name[1] = (char)byte;
        enum http2_request_result result = decode_block(span_of(block, len), false);
        if ((result == HTTP2_REQUEST_DECODED) != lower)
            fail_msg("byte %#x: %d", byte, (int)result);
    }
    char empty[16];
    size_t empty_len = hpack_bytes("82 87 84 00 00 01 61", empty, sizeof(empty));
    assert_int_equal(decode_block(span_of(empty, empty_len), false), HTTP2_REQUEST_MALFORMED);
    assert_malformed(GET "User-Agent: x\n");
    assert_malformed(GET "accepT: x\n");
}

static void rfc_9113_section_8_2_1_field_values(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        char block[300];
        size_t len = hpack_literals(SPAN(GET "x-a: 1?2\nuser-agent: 1?2\n"), block, sizeof(block));
        bool allowed = byte == '\t' || (byte >= ' ' && byte != 0x7f);
        for (size_t i = 0; i + 2 < len; i++)
            if (memcmp(block + i, "1?2", 3) == 0)
                block[i + 1] = (char)byte;
        enum http2_request_result result = decode_block(span_of(block, len), false);
        if ((result == HTTP2_REQUEST_DECODED) != allowed)
            fail_msg("byte %#x: %d", byte, (int)result);
    }
    assert_malformed(GET "x-a:  1\n");
    assert_malformed(GET "x-a: 1 \n");
    assert_malformed(GET "x-a: \t1\n");
    assert_malformed(GET "x-a: 1\t\n");
    assert_malformed(GET "accept:  \n");
    assert_decodes(GET "x-a: \n", HEAD "\r\n");
    assert_decodes(GET "accept: \n", HEAD "accept: \r\n\r\n");
}

static void rfc_9113_section_8_2_1_remembers_a_wrong_value_that_the_table_does_not_keep(
    void **state)
{
    (void)state;
    char block[100];
    size_t len = hpack_bytes("82 87 84 40 01 78 02 0d 0a", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_MALFORMED);
    len = hpack_bytes("82 87 84 be", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_MALFORMED);
    /* Only the value is wrong: its name with another value is right. */
    len = hpack_bytes("82 87 84 0f2f 01 61", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
    len = hpack_bytes("82 87 84 40 01 58 01 61", block, sizeof(block)); /* X */
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_MALFORMED);
    len = hpack_bytes("82 87 84 0f2f 01 61", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_MALFORMED);
}

/* ---- RFC 9113 section 8.2.2 ---- */

static void rfc_9113_section_8_2_2_fields_of_a_connection(void **state)
{
    (void)state;
    assert_malformed(GET "connection: close\n");
    assert_malformed(GET "connection: \n");
    assert_malformed(GET "proxy-connection: keep-alive\n");
    assert_malformed(GET "keep-alive: timeout=5\n");
    assert_malformed(GET "transfer-encoding: chunked\n");
    assert_malformed(GET "upgrade: h2c\n");
    assert_malformed(GET "te: gzip\n");
    assert_malformed(GET "te: trailers, gzip\n");
    assert_malformed(GET "te: \n");
    assert_decodes(GET "te: trailers\n", HEAD "\r\n");
    assert_decodes(GET "te: Trailers\n", HEAD "\r\n");
}

/* ---- RFC 9113 section 8.2.3 ---- */

static void rfc_9113_section_8_2_3_cookies_may_come_in_pieces(void **state)
{
    (void)state;
    assert_decodes(GET "cookie: a=b\ncookie: c=d\nuser-agent: x\ncookie: e=f\n",
                   HEAD "user-agent: x\r\n\r\n");
    assert_malformed(GET "cookie: a=b\ncookie: \x01\n");
}

/* ---- RFC 9113 section 8.3 ---- */

static void rfc_9113_section_8_3_pseudo_fields_come_first(void **state)
{
    (void)state;
    assert_malformed(":method: GET\n:scheme: https\n:authority: a\naccept: x\n:path: /\n");
    assert_malformed("accept: x\n" GET);
    assert_malformed(GET "x-a: 1\n:path: /y\n");
}

static void rfc_9113_section_8_3_each_pseudo_field_is_there_once(void **state)
{
    (void)state;
    assert_malformed(GET ":method: GET\n");
    assert_malformed(GET ":scheme: https\n");
    assert_malformed(GET ":authority: a.example\n");
    assert_malformed(GET ":path: /x\n");
}

static void rfc_9113_section_8_3_refuses_other_pseudo_fields(void **state)
{
    (void)state;
    assert_malformed(GET ":status: 200\n");
    assert_malformed(GET ":protocol: websocket\n"); /* RFC 8441 needs a setting of the server */
    assert_malformed(GET ":x: 1\n");
    assert_malformed(GET ":: 1\n");
    assert_malformed(":Method: GET\n:scheme: https\n:authority: a\n:path: /\n");
}

/* ---- RFC 9113 section 8.3.1 ---- */

static void rfc_9113_section_8_3_1_method_scheme_and_path_are_there(void **state)
{
    (void)state;
    assert_malformed("");
    assert_malformed("accept: x\n");
    assert_malformed(":scheme: https\n:authority: a\n:path: /\n");
    assert_malformed(":method: GET\n:authority: a\n:path: /\n");
    assert_malformed(":method: GET\n:scheme: https\n:authority: a\n");
    assert_malformed(":method: GET\n:scheme: https\n:authority: a\naccept: x\n");
}

static void rfc_9113_section_8_3_1_the_method_is_a_token(void **state)
{
    (void)state;
#define WITH_METHOD(method) ":method: " method "\n:scheme: https\n:authority: a\n:path: /\n"
    assert_decodes(WITH_METHOD("get"), "get / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_decodes(WITH_METHOD("M-SEARCH"), "M-SEARCH / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_malformed(WITH_METHOD(""));
    assert_malformed(WITH_METHOD("G T"));
    assert_malformed(WITH_METHOD("GET / HTTP/1.1"));
    assert_malformed(WITH_METHOD("G\xc3\xa9T"));

    /* A method that is too long is the parser's to refuse, with 501. */
    struct http_request parsed = { 0 };
    enum http_status status;
    assert_int_equal(decode(WITH_METHOD("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")),
                     HTTP2_REQUEST_DECODED);
    assert_int_equal(http_request_parse(&parsed, request.text, &status), HTTP_PARSE_FAILED);
    assert_int_equal(status, HTTP_NOT_IMPLEMENTED);
}

static void rfc_9113_section_8_3_1_the_scheme_is_a_scheme(void **state)
{
    (void)state;
    static const struct {
        const char *scheme;
        bool right;
        enum http2_scheme expected;
    } rows[] = {
        { "http", true, HTTP2_SCHEME_HTTP },
        { "https", true, HTTP2_SCHEME_HTTPS },
        { "HTTPS", true, HTTP2_SCHEME_HTTPS },
        { "hTTp", true, HTTP2_SCHEME_HTTP },
        { "ftp", true, HTTP2_SCHEME_OTHER },
        { "httpsx", true, HTTP2_SCHEME_OTHER },
        { "a+b-c.1", true, HTTP2_SCHEME_OTHER },
        { "", false, 0 },
        { "1a", false, 0 },
        { "https:", false, 0 },
        { "https://a", false, 0 },
        { "a b", false, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char fields[200];
        (void)snprintf(fields, sizeof(fields),
                       ":method: GET\n:scheme: %s\n:authority: a\n:path: /\n", rows[i].scheme);
        enum http2_request_result result = decode(fields);
        if ((result == HTTP2_REQUEST_DECODED) != rows[i].right)
            fail_msg("`%s`: %d", rows[i].scheme, (int)result);
        if (rows[i].right)
            assert_int_equal(request.scheme, rows[i].expected);
    }
}

static void rfc_9113_section_8_3_1_the_path_begins_with_a_slash_or_is_the_asterisk(void **state)
{
    (void)state;
#define WITH_PATH(method, path) \
    ":method: " method "\n:scheme: https\n:authority: a\n:path: " path "\n"
    assert_decodes(WITH_PATH("GET", "/a?b=c%20"), "GET /a?b=c%20 HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_decodes(WITH_PATH("OPTIONS", "*"), "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_decodes(WITH_PATH("OPTIONS", "/"), "OPTIONS / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_malformed(WITH_PATH("GET", ""));
    assert_malformed(WITH_PATH("GET", "*"));
    assert_malformed(WITH_PATH("OPTIONS", "*x"));
    assert_malformed(WITH_PATH("GET", "x"));
    assert_malformed(WITH_PATH("GET", "?q"));
    assert_malformed(WITH_PATH("GET", "https://a/"));
    assert_malformed(WITH_PATH("GET", "/a b"));
    assert_malformed(WITH_PATH("GET", "/a\tb"));
    assert_malformed(WITH_PATH("GET", "/ HTTP/1.1"));
}

static void rfc_9113_section_8_3_1_host_is_the_authority(void **state)
{
    (void)state;
    assert_decodes(GET "host: a.example\n", HEAD "\r\n");
    assert_decodes(GET "host: A.Example\n", HEAD "\r\n");
    assert_malformed(GET "host: b.example\n");
    assert_malformed(GET "host: a.example:443\n");
    assert_malformed(GET "host: \n");
    assert_malformed(GET "host: a.example\nhost: a.example\n");
    assert_malformed(":method: GET\n:scheme: https\n:authority: \n:path: /x\n");

    /* Without :authority, Host counts. */
    assert_decodes(":method: GET\n:scheme: https\n:path: /x\nhost: a.example\n", HEAD "\r\n");
    assert_malformed(":method: GET\n:scheme: https\n:path: /x\nhost: a\nhost: a\n");
    /* Without either, the parser's answer is 400. */
    assert_decodes(":method: GET\n:scheme: https\n:path: /x\n", "GET /x HTTP/1.1\r\n\r\n");
}

static void rfc_9113_section_8_3_1_the_parser_refuses_user_information(void **state)
{
    (void)state;
    static const char *const authorities[] = { "user@a", "u:p@a", "a b", "a/b", "a?b", "a:99999" };
    for (size_t i = 0; i < COUNT(authorities); i++) {
        char fields[200];
        struct http_request parsed = { 0 };
        struct http_target target;
        char path[HTTP_TARGET_MAX];
        enum http_status status;
        (void)snprintf(fields, sizeof(fields),
                       ":method: GET\n:scheme: https\n:authority: %s\n:path: /\n", authorities[i]);
        assert_int_equal(decode(fields), HTTP2_REQUEST_DECODED);
        assert_int_equal(http_request_parse(&parsed, request.text, &status), HTTP_PARSED);
        assert_int_equal(http_target_resolve(&target, &parsed, request.text.at, path, sizeof(path)),
                         HTTP_BAD_REQUEST);
    }
    char fields[HTTP2_AUTHORITY_MAX + 100];
    for (size_t len = HTTP2_AUTHORITY_MAX; len <= HTTP2_AUTHORITY_MAX + 1; len++) {
        (void)snprintf(fields, sizeof(fields),
                       ":method: GET\n:scheme: https\n:path: /\n:authority: %0*d\n", (int)len, 0);
        assert_int_equal(decode(fields), len > HTTP2_AUTHORITY_MAX ? HTTP2_REQUEST_MALFORMED
                                                                   : HTTP2_REQUEST_DECODED);
    }
}

/* ---- RFC 9113 section 8.5 ---- */

static void rfc_9113_section_8_5_connect_has_an_authority_only(void **state)
{
    (void)state;
    assert_decodes(":method: CONNECT\n:authority: a.example:443\n",
                   "CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n");
    assert_int_equal(request.scheme, HTTP2_SCHEME_NONE);
    assert_decodes(":authority: a:1\n:method: CONNECT\nuser-agent: x\n",
                   "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\nuser-agent: x\r\n\r\n");
    assert_malformed(":method: CONNECT\n");
    assert_malformed(":method: CONNECT\nhost: a:1\n");
    assert_malformed(":method: CONNECT\n:authority: a:1\n:scheme: https\n");
    assert_malformed(":method: CONNECT\n:authority: a:1\n:path: /\n");
    assert_malformed(":method: CONNECT\n:authority: a:1\n:scheme: https\n:path: /\n");
    assert_malformed(":method: CONNECT\n:authority: a b\n");
    assert_malformed(":method: GET\n:authority: a:1\n");
}

/* ---- RFC 9113 section 8.1.1 ---- */

static void rfc_9113_section_8_1_1_content_length_is_one_number(void **state)
{
    (void)state;
    assert_malformed(GET "content-length: \n");
    assert_malformed(GET "content-length: -1\n");
    assert_malformed(GET "content-length: +1\n");
    assert_malformed(GET "content-length: 1, 1\n");
    assert_malformed(GET "content-length: 0x1\n");
    assert_malformed(GET "content-length: 1\ncontent-length: 1\n");
    assert_malformed(GET "content-length: 1\ncontent-length: 2\n");
    assert_malformed(GET "content-length: 18446744073709551616\n");
    assert_decodes(GET "content-length: 18446744073709551614\n", HEAD "\r\n");
    assert_true(request.content_length == UINT64_MAX - 1);
    /* The largest number means that there is no length. */
    assert_decodes(GET "content-length: 18446744073709551615\n", HEAD "\r\n");
    assert_true(request.content_length == UINT64_MAX - 1);
}

static void rfc_9113_section_8_1_trailers_have_no_pseudo_fields(void **state)
{
    (void)state;
    static const char *const malformed[] = {
        ":method: GET\n",  ":status: 200\n", "x-a: 1\n:path: /\n",
        "connection: x\n", "X-A: 1\n",       "transfer-encoding: gzip\n",
        "x-a: \x01\n",     "te: gzip\n",
    };
    assert_int_equal(decode_trailers("x-checksum: 1\ncontent-length: x\nhost: b\n"),
                     HTTP2_REQUEST_DECODED);
    assert_int_equal(request.text.len, 0);
    assert_int_equal(decode_trailers(""), HTTP2_REQUEST_DECODED);
    for (size_t i = 0; i < COUNT(malformed); i++)
        if (decode_trailers(malformed[i]) != HTTP2_REQUEST_MALFORMED)
            fail_msg("`%s`", malformed[i]);
}

/* ---- bounds ---- */

static void bounds_the_count_of_fields_cookies_included(void **state)
{
    (void)state;
    for (unsigned extra = 0; extra < 2; extra++) {
        char fields[ROOM] = GET;
        size_t len = sizeof(GET) - 1;
        for (unsigned i = 4; i < HTTP2_FIELDS_MAX + extra; i++)
            len += (size_t)snprintf(fields + len, sizeof(fields) - len, "cookie: a=b\n");
        assert_int_equal(decode(fields), extra ? HTTP2_REQUEST_TOO_LARGE : HTTP2_REQUEST_DECODED);
        assert_true(span_equal(request.text, SPAN(HEAD "\r\n")));
    }
}

static void bounds_the_bytes_of_the_fields(void **state)
{
    (void)state;
    static char block[2 * ROOM];
    size_t overhead = 4 * 32 + strlen(":methodGET:schemehttps:authoritya.example:path/x") + 2 * 32 +
                      strlen("user-agentuser-agent");
    size_t value_max = HTTP2_HEADER_LIST_MAX - overhead;
    for (unsigned extra = 0; extra < 2; extra++) {
        static char fields[ROOM];
        (void)snprintf(fields, sizeof(fields), GET "user-agent: %0*d\nuser-agent: %0*d\n",
                       (int)(value_max / 2), 0, (int)(value_max - value_max / 2 + extra), 0);
        size_t len = hpack_literals(span_text(fields), block, sizeof(block));
        assert_int_equal(decode_block(span_of(block, len), false),
                         extra ? HTTP2_REQUEST_TOO_LARGE : HTTP2_REQUEST_DECODED);
        assert_true(span_starts(request.text, SPAN(HEAD "user-agent: 0")));
        assert_true(span_ends(request.text, SPAN("0\r\n\r\n")));
    }
}

/* One byte of a block can refer to 4 KiB of the table: the bound holds for decoded bytes. */
static void bounds_a_bomb_of_indexed_fields(void **state)
{
    (void)state;
    static char block[ROOM];
    struct buf out = buf_over(block, sizeof(block));
    char value[4000];
    memset(value, 'v', sizeof(value));
    buf_add(&out, SPAN("\x82\x87\x84\x7a"));
    http2_hpack_add_integer(&out, 0, 7, sizeof(value));
    buf_add(&out, span_of(value, sizeof(value)));
    while (out.len < ROOM - 3)
        buf_add_char(&out, (char)0xbe);
    assert_int_equal(decode_block(buf_span(&out), false), HTTP2_REQUEST_TOO_LARGE);
    assert_true(request.text.len <= HTTP2_HEADER_LIST_MAX);
    assert_true(table.memory_size <= HTTP2_TABLE_MEMORY_MAX);
}

static void a_request_that_is_refused_keeps_the_table_right(void **state)
{
    (void)state;
    char block[200];
    size_t len = hpack_bytes("87 59 01 61 82 84 7a 01 75", block, sizeof(block));
    /* :scheme, content-disposition, then pseudo-header fields: malformed at the second field. */
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_MALFORMED);
    len = hpack_bytes("82 87 84 be bf", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
    assert_true(span_equal(request.text, SPAN("GET / HTTP/1.1\r\nuser-agent: u\r\n\r\n")));

    static char large[ROOM];
    struct buf out = buf_over(large, sizeof(large));
    buf_add(&out, SPAN("\x82\x87\x84"));
    for (unsigned i = 0; i <= HTTP2_FIELDS_MAX; i++)
        buf_add_char(&out, (char)0xbf);
    buf_add(&out, SPAN("\x7a\x01w"));
    assert_int_equal(decode_block(buf_span(&out), false), HTTP2_REQUEST_TOO_LARGE);
    len = hpack_bytes("82 87 84 be", block, sizeof(block));
    assert_int_equal(decode_block(span_of(block, len), false), HTTP2_REQUEST_DECODED);
    assert_true(span_equal(request.text, SPAN("GET / HTTP/1.1\r\nuser-agent: w\r\n\r\n")));
}

static void names_a_broken_block(void **state)
{
    (void)state;
    assert_int_equal(decode_block(SPAN("\x82\x87\x84\xbe"), false), HTTP2_REQUEST_BROKEN);
    assert_int_equal(decode_block(SPAN("\x3f\xff\xff\x03\x82"), false), HTTP2_REQUEST_BROKEN);
    assert_int_equal(decode_block(SPAN("\x82\x20"), false), HTTP2_REQUEST_BROKEN);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin_table, end_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_a_head_that_the_parser_reads),
        TEST(writes_every_field_that_the_parser_reads),
        TEST(reads_pseudo_fields_in_any_order),
        TEST(drops_fields_that_the_server_does_not_read),
        TEST(lends_the_priority_and_the_length),
        TEST(knows_a_navigation_without_writing_its_field),
        TEST(knows_a_navigation_from_the_dynamic_table),
        TEST(reads_the_same_request_from_the_dynamic_table),
        TEST(rfc_9113_section_8_2_1_field_names),
        TEST(rfc_9113_section_8_2_1_field_values),
        TEST(rfc_9113_section_8_2_1_remembers_a_wrong_value_that_the_table_does_not_keep),
        TEST(rfc_9113_section_8_2_2_fields_of_a_connection),
        TEST(rfc_9113_section_8_2_3_cookies_may_come_in_pieces),
        TEST(rfc_9113_section_8_3_pseudo_fields_come_first),
        TEST(rfc_9113_section_8_3_each_pseudo_field_is_there_once),
        TEST(rfc_9113_section_8_3_refuses_other_pseudo_fields),
        TEST(rfc_9113_section_8_3_1_method_scheme_and_path_are_there),
        TEST(rfc_9113_section_8_3_1_the_method_is_a_token),
        TEST(rfc_9113_section_8_3_1_the_scheme_is_a_scheme),
        TEST(rfc_9113_section_8_3_1_the_path_begins_with_a_slash_or_is_the_asterisk),
        TEST(rfc_9113_section_8_3_1_host_is_the_authority),
        TEST(rfc_9113_section_8_3_1_the_parser_refuses_user_information),
        TEST(rfc_9113_section_8_5_connect_has_an_authority_only),
        TEST(rfc_9113_section_8_1_1_content_length_is_one_number),
        TEST(rfc_9113_section_8_1_trailers_have_no_pseudo_fields),
        TEST(bounds_the_count_of_fields_cookies_included),
        TEST(bounds_the_bytes_of_the_fields),
        TEST(bounds_a_bomb_of_indexed_fields),
        TEST(a_request_that_is_refused_keeps_the_table_right),
        TEST(names_a_broken_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
