/* SPDX-License-Identifier: MIT
 *
 * Request heads, valid and invalid, one by one. tests/property/request_test.c tests that the
 * split of the input makes no difference.
 */
#include "http/request.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define FIELDS      "Host: a\r\n\r\n"

/* The expected result of a parse: 0 is HTTP_PARSED, 1 HTTP_PARSE_MORE, anything else a status. */
enum { PARSED = 0, MORE = 1 };

struct parsed {
    struct guard guard;
    struct span bytes;
    struct http_request request;
    int result;
};

/* A test reads the result before parsed_done, because the spans point into its memory. */
static void parse(struct parsed *p, struct span bytes)
{
    enum http_status status = HTTP_OK;

    memset(p, 0, sizeof(*p));
    p->bytes = guard_copy(&p->guard, bytes);
    switch (http_request_parse(&p->request, p->bytes, &status)) {
    case HTTP_PARSED:
        p->result = PARSED;
        break;
    case HTTP_PARSE_MORE:
        p->result = MORE;
        break;
    case HTTP_PARSE_FAILED:
        p->result = (int)status;
        break;
    }
}

static void parsed_done(struct parsed *p)
{
    guard_done(&p->guard);
}

static struct span slice(const struct parsed *p, struct http_slice s)
{
    return span_of(p->bytes.at + s.at, s.len);
}

#define assert_span(got, want) \
    do { \
        struct span got_ = (got); \
        if (!span_equal(got_, span_text(want))) \
            fail_msg("expected `%s`, got `%.*s`", (want), (int)got_.len, got_.at); \
    } while (0)

struct row {
    struct span head;
    int result;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct parsed p;
        parse(&p, rows[i].head);
        if (p.result != rows[i].result)
            fail_msg("row %zu, `%.*s`: expected %d, got %d", i, (int)rows[i].head.len,
                     rows[i].head.at, rows[i].result, p.result);
        parsed_done(&p);
    }
}

static void reads_a_browsers_request(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, SPAN("GET /a/b.html?c=d HTTP/1.1\r\n"
                   "Host: www.example.com\r\n"
                   "Connection: keep-alive\r\n"
                   "sec-ch-ua-mobile: ?0\r\n"
                   "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
                   "Accept: text/css,*/*;q=0.1\r\n"
                   "REFERER: http://www.example.com/\r\n"
                   "accept-encoding: gzip, br\r\n"
                   "Accept-Language: en\r\n"
                   "\r\n"));
    const struct http_request *r = &p.request;

    assert_int_equal(p.result, PARSED);
    assert_int_equal(r->head_len, p.bytes.len);
    assert_int_equal(r->method, HTTP_GET);
    assert_int_equal(r->minor, 1);
    assert_span(slice(&p, r->method_text), "GET");
    assert_span(slice(&p, r->target), "/a/b.html?c=d");
    assert_span(slice(&p, r->line), "GET /a/b.html?c=d HTTP/1.1");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_HOST), "www.example.com");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_CONNECTION), "keep-alive");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_USER_AGENT),
                "Mozilla/5.0 (X11; Linux x86_64)");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_ACCEPT), "text/css,*/*;q=0.1");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_REFERER), "http://www.example.com/");
    assert_span(http_request_field(r, p.bytes.at, HTTP_FIELD_ACCEPT_ENCODING), "gzip, br");
    assert_false(http_request_has(r, HTTP_FIELD_RANGE));
    assert_int_equal(http_request_field(r, p.bytes.at, HTTP_FIELD_RANGE).len, 0);
    assert_int_equal(r->repeated, 0);
    parsed_done(&p);
}

static void recognises_every_field_of_the_table_in_any_case_and_no_similar_name(void **state)
{
    (void)state;
    static const char *const names[] = {
#define FIELD(name, text) text,
        HTTP_FIELDS(FIELD)
#undef FIELD
    };
    for (unsigned f = 0; f < HTTP_FIELD_COUNT; f++) {
        size_t len = strlen(names[f]);
        /* Each byte in upper case in turn, then each byte replaced, then one added or dropped. */
        for (size_t i = 0; i <= 2 * len + 1; i++) {
            char head[128] = "GET / HTTP/1.1\r\n";
            char name[32];
            (void)snprintf(name, sizeof(name), "%s", names[f]);
            bool same = i < len;
            if (i < len && name[i] != '-')
                name[i] = (char)(name[i] - ('a' - 'A'));
            else if (i >= len && i < 2 * len)
                name[i - len] = name[i - len] == 'x' ? 'y' : 'x';
            else if (i == 2 * len)
                name[len - 1] = '\0';
            else if (i == 2 * len + 1)
                (void)snprintf(name, sizeof(name), "%sx", names[f]);
            size_t at = strlen(head);
            (void)snprintf(head + at, sizeof(head) - at, "%s: v\r\n\r\n", name);

            struct parsed p;
            parse(&p, span_text(head));
            assert_int_equal(p.result, PARSED);
            if (p.request.present != (same ? 1u << f : 0))
                fail_msg("`%s`: present is %x", name, p.request.present);
            parsed_done(&p);
        }
    }
}

static void classifies_methods(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        enum http_method expected;
    } rows[] = {
        { "GET", HTTP_GET },
        { "HEAD", HTTP_HEAD },
        { "OPTIONS", HTTP_OPTIONS },
        { "POST", HTTP_METHOD_KNOWN },
        { "PUT", HTTP_METHOD_KNOWN },
        { "DELETE", HTTP_METHOD_KNOWN },
        { "PATCH", HTTP_METHOD_KNOWN },
        { "TRACE", HTTP_METHOD_KNOWN },
        { "CONNECT", HTTP_METHOD_KNOWN },
        { "PROPFIND", HTTP_METHOD_KNOWN },
        { "UPDATEREDIRECTREF", HTTP_METHOD_KNOWN },
        { "get", HTTP_METHOD_UNKNOWN },
        { "Get", HTTP_METHOD_UNKNOWN },
        { "GE", HTTP_METHOD_UNKNOWN },
        { "GETS", HTTP_METHOD_UNKNOWN },
        { "FOOBAR", HTTP_METHOD_UNKNOWN },
        { "!#$%&'*+-.^_`|~09", HTTP_METHOD_UNKNOWN },
        { "ABCDEFGHIJKLMNOPQRSTUVWXYZ-01234", HTTP_METHOD_UNKNOWN }, /* HTTP_METHOD_MAX bytes */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char head[128];
        (void)snprintf(head, sizeof(head), "%s / HTTP/1.1\r\n" FIELDS, rows[i].method);
        struct parsed p;
        parse(&p, span_text(head));
        assert_int_equal(p.result, PARSED);
        assert_int_equal(p.request.method, rows[i].expected);
        assert_span(slice(&p, p.request.method_text), rows[i].method);
        parsed_done(&p);
    }
}

static void refuses_a_malformed_request_line(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { SPAN("GET / HTTP/1.1\nHost: a\n\n"), 400 },
        { SPAN("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400 },
        { SPAN("GET / HTTP/1.1\r\r\n" FIELDS), 400 },
        { SPAN("GET  / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET\t/ HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET\f/ HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /  HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /\tHTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/1.1 \r\n" FIELDS), 400 },
        { SPAN(" GET / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /a b HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /\r\n"), 400 },
        { SPAN("GET\r\n"), 400 },
        { SPAN("G\0ET / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("G/T / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN(":GET / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("G\xc3\x89T / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /\x01 HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /\x7f HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("GET /\0 HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400 },
    };
    check_rows(rows, COUNT(rows));
}

static void refuses_a_malformed_version_and_other_major_versions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { SPAN("GET / HTTP/2.0\r\n" FIELDS), 505 },
        { SPAN("GET / HTTP/9.9\r\n" FIELDS), 505 },
        { SPAN("GET / HTTP/0.9\r\n" FIELDS), 505 },
        { SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505 },
        { SPAN("GET / HTTP/2.0"), MORE },
        { SPAN("GET / HTTP/2.00\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/4294967295.255\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/1\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/1.\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/01.01\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/ 1.1\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/1.11\r\n" FIELDS), 400 },
        { SPAN("GET / HTTP/1,1\r\n" FIELDS), 400 },
        { SPAN("GET / HTT/1.1\r\n" FIELDS), 400 },
        { SPAN("GET / http/1.1\r\n" FIELDS), 400 },
        { SPAN("GET / HTTPS/1.1\r\n" FIELDS), 400 },
    };
    check_rows(rows, COUNT(rows));
}

static void reads_minor_versions(void **state)
{
    (void)state;
    for (char minor = '0'; minor <= '9'; minor++) {
        char head[] = "GET / HTTP/1.x\r\n\r\n";
        *strchr(head, 'x') = minor;
        struct parsed p;
        parse(&p, span_text(head));
        assert_int_equal(p.result, PARSED);
        assert_int_equal(p.request.minor, minor == '0' ? 0 : 1);
        parsed_done(&p);
    }
}

static void skips_a_few_empty_lines_before_the_request_line(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, SPAN("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" FIELDS));
    assert_int_equal(p.result, PARSED);
    assert_int_equal(p.request.head_len, p.bytes.len);
    assert_span(slice(&p, p.request.line), "GET / HTTP/1.1");
    parsed_done(&p);

    static const struct row rows[] = {
        { SPAN("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("\r\n\r\n\r\n\r\n\r"), 400 },
        { SPAN("\r\n\r\n\r\n\r\n"), MORE },
        { SPAN("\nGET / HTTP/1.1\r\n" FIELDS), 400 },
        { SPAN("\rGET / HTTP/1.1\r\n" FIELDS), 400 },
    };
    check_rows(rows, COUNT(rows));
}

#define AFTER_LINE(text) SPAN("GET / HTTP/1.1\r\n" text)

static void refuses_malformed_fields(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { AFTER_LINE("Host : a\r\n\r\n"), 400 },
        { AFTER_LINE("Host\t: a\r\n\r\n"), 400 },
        { AFTER_LINE(": y\r\n\r\n"), 400 },
        { AFTER_LINE("NoColon\r\n\r\n"), 400 },
        { AFTER_LINE("Ba[d: y\r\n\r\n"), 400 },
        { AFTER_LINE("a/b: y\r\n\r\n"), 400 },
        { AFTER_LINE("n\xc3\xab: y\r\n\r\n"), 400 },
        { AFTER_LINE("n\x80: y\r\n\r\n"), 400 },
        { AFTER_LINE("n\0: y\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\0b\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\rb\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\r\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\nY: b\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\x07\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\x0b\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\x1b\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\x7f\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\r\n\tb\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\r\n b\r\n\r\n"), 400 },
        { AFTER_LINE("X:\r\n b\r\n\r\n"), 400 },
        { AFTER_LINE(" X: a\r\n\r\n"), 400 },
        { AFTER_LINE("\tX: a\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\r\n\rY: b\r\n\r\n"), 400 },
        { AFTER_LINE("X: a\r\n\n"), 400 },
        { AFTER_LINE("\n"), 400 },
    };
    check_rows(rows, COUNT(rows));
}

static void keeps_values_as_they_are_and_trims_them(void **state)
{
    (void)state;
    static const struct {
        struct span head;
        const char *value;
    } rows[] = {
        { AFTER_LINE("Referer:\r\n\r\n"), "" },
        { AFTER_LINE("Referer: \t \r\n\r\n"), "" },
        { AFTER_LINE("Referer:y\r\n\r\n"), "y" },
        { AFTER_LINE("Referer: \t y\tz \t\r\n\r\n"), "y\tz" },
        { AFTER_LINE("Referer: \xe9\xff\x80\r\n\r\n"), "\xe9\xff\x80" },
        { AFTER_LINE("Referer: :\"\\,;\r\n\r\n"), ":\"\\,;" },
        { AFTER_LINE("Referer: 1\r\nX: 2\r\nReferer: 3\r\n\r\n"), "1" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parsed p;
        parse(&p, rows[i].head);
        assert_int_equal(p.result, PARSED);
        assert_true(http_request_has(&p.request, HTTP_FIELD_REFERER));
        assert_span(http_request_field(&p.request, p.bytes.at, HTTP_FIELD_REFERER), rows[i].value);
        parsed_done(&p);
    }
}

static void does_not_mistake_similar_names_for_framing_fields(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, AFTER_LINE("Host: a\r\nTransfer_Encoding: chunked\r\nContent_Length: 5\r\n"
                         "Content-Lengt\x7e: 5\r\n\r\n"));
    assert_int_equal(p.result, PARSED);
    assert_int_equal(p.request.present, 1u << HTTP_FIELD_HOST);
    parsed_done(&p);
}

static void reports_repeated_fields_and_gives_all_their_values(void **state)
{
    (void)state;
    static const char *const values[] = { "a", "", "b, c" };
    struct parsed p;
    parse(&p, AFTER_LINE("If-Match: a\r\nHost: h\r\nIF-MATCH:\r\nIf-Matches: x\r\n"
                         "Accept: a\r\nAccept: b\r\n"
                         "if-match: \tb, c \r\n\r\nIf-Match: behind\r\n\r\n"));
    size_t cursor = 0;
    struct span value;

    assert_int_equal(p.result, PARSED);
    assert_int_equal(p.request.repeated, 1u << HTTP_FIELD_IF_MATCH | 1u << HTTP_FIELD_ACCEPT);
    assert_true(http_request_repeats(&p.request, HTTP_FIELD_IF_MATCH));
    assert_false(http_request_repeats(&p.request, HTTP_FIELD_HOST));
    for (size_t i = 0; i < COUNT(values); i++) {
        assert_true(
            http_request_next_value(&p.request, p.bytes.at, HTTP_FIELD_IF_MATCH, &cursor, &value));
        assert_span(value, values[i]);
    }
    for (int again = 0; again < 2; again++)
        assert_false(
            http_request_next_value(&p.request, p.bytes.at, HTTP_FIELD_IF_MATCH, &cursor, &value));
    cursor = 0;
    assert_false(
        http_request_next_value(&p.request, p.bytes.at, HTTP_FIELD_RANGE, &cursor, &value));
    parsed_done(&p);
}

static void does_not_read_bytes_behind_the_head(void **state)
{
    (void)state;
    struct parsed p;
    parse(&p, SPAN("GET / HTTP/1.1\r\n" FIELDS "\0\n\x80 not a request"));
    assert_int_equal(p.result, PARSED);
    assert_int_equal(p.request.head_len, sizeof("GET / HTTP/1.1\r\n" FIELDS) - 1);
    parsed_done(&p);
}

static void needs_more_while_the_beginning_is_valid(void **state)
{
    (void)state;
    static const struct row rows[] = {
        { SPAN(""), MORE },
        { SPAN("\r"), MORE },
        { SPAN("G"), MORE },
        { SPAN("GET "), MORE },
        { SPAN("GET /"), MORE },
        { SPAN("GET / H"), MORE },
        { SPAN("GET / HTTP/1.1\r"), MORE },
        { AFTER_LINE("Host"), MORE },
        { AFTER_LINE("Host:"), MORE },
        { AFTER_LINE("Host: a"), MORE },
        { AFTER_LINE("Host: a\r"), MORE },
        { AFTER_LINE("Host: a\r\n"), MORE },
        { AFTER_LINE("Host: a\r\n\r"), MORE },
    };
    check_rows(rows, COUNT(rows));
}

/* `before`, then `count` times `fill`, then `after`. */
static int parse_filled(const char *before, char fill, size_t count, const char *after)
{
    static char head[128 * 1024];
    size_t len = strlen(before);

    memcpy(head, before, len);
    memset(head + len, fill, count);
    memcpy(head + len + count, after, strlen(after));
    struct parsed p;
    parse(&p, span_of(head, len + count + strlen(after)));
    parsed_done(&p);
    return p.result;
}

static void applies_every_limit_at_the_first_byte_above_it(void **state)
{
    (void)state;
    const char *end = " HTTP/1.1\r\n" FIELDS;

    assert_int_equal(parse_filled("", 'A', HTTP_METHOD_MAX, " / HTTP/1.1\r\n" FIELDS), PARSED);
    assert_int_equal(parse_filled("", 'A', HTTP_METHOD_MAX, ""), MORE);
    assert_int_equal(parse_filled("", 'A', HTTP_METHOD_MAX + 1, ""), 501);
    assert_int_equal(parse_filled("", 'A', 100000, " / HTTP/1.1\r\n"), 501);

    assert_int_equal(parse_filled("GET /", 'a', HTTP_TARGET_MAX - 1, end), PARSED);
    assert_int_equal(parse_filled("GET /", 'a', HTTP_TARGET_MAX - 1, ""), MORE);
    assert_int_equal(parse_filled("GET /", 'a', HTTP_TARGET_MAX, ""), 414);
    assert_int_equal(parse_filled("GET /", 'a', 100000, end), 414);
    assert_int_equal(parse_filled("GET /", 'a', HTTP_TARGET_MAX, "\x01"), 414);
    assert_int_equal(parse_filled("GET /", 'a', HTTP_TARGET_MAX - 1, "\x01"), 400);

    const char *name = "GET / HTTP/1.1\r\n";
    assert_int_equal(parse_filled(name, 'n', HTTP_FIELD_NAME_MAX, ": v\r\n\r\n"), PARSED);
    assert_int_equal(parse_filled(name, 'n', HTTP_FIELD_NAME_MAX, ""), MORE);
    assert_int_equal(parse_filled(name, 'n', HTTP_FIELD_NAME_MAX + 1, ""), 431);
    assert_int_equal(parse_filled(name, '!', HTTP_FIELD_NAME_MAX + 1, " "), 431);
    assert_int_equal(parse_filled(name, '!', HTTP_FIELD_NAME_MAX, " "), 400);

    const char *value = "GET / HTTP/1.1\r\nX: ";
    size_t room = HTTP_HEAD_MAX - strlen(value);
    assert_int_equal(parse_filled(value, 'v', room - 4, "\r\n\r\n"), PARSED);
    assert_int_equal(parse_filled(value, 'v', room - 3, "\r\n\r\n"), 431);
    assert_int_equal(parse_filled(value, 'v', room - 1, ""), MORE);
    assert_int_equal(parse_filled(value, 'v', room, ""), 431);
    assert_int_equal(parse_filled(value, 'v', room, "\x01"), 431);
    assert_int_equal(parse_filled(value, 'v', room - 1, "\x01"), 400);
    assert_int_equal(parse_filled(value, 'v', 100000, ""), 431);
    assert_int_equal(parse_filled(value, ' ', 100000, ""), 431);
}

static void accepts_fields_up_to_the_limit(void **state)
{
    (void)state;
    for (size_t count = HTTP_FIELDS_MAX; count <= HTTP_FIELDS_MAX + 1; count++) {
        char head[8 * 1024] = "\r\n\r\nGET / HTTP/1.1\r\n";
        size_t len = strlen(head);
        for (size_t i = 0; i < count; i++)
            len += (size_t)snprintf(head + len, sizeof(head) - len, "F%zu: v\r\n", i);
        (void)snprintf(head + len, sizeof(head) - len, "\r\n");
        struct parsed p;
        parse(&p, span_text(head));
        assert_int_equal(p.result, count == HTTP_FIELDS_MAX ? PARSED : 431);
        parsed_done(&p);
    }
}

static void keeps_a_bad_request_line_for_the_log(void **state)
{
    (void)state;
    static const struct {
        struct span head;
        const char *line;
    } rows[] = {
        { SPAN("GET  / HTTP/1.1\r\n"), "GET  " },
        { SPAN("GET /a b HTTP/1.1\r\n"), "GET /a b" },
        { SPAN("\r\n\x16\x03\x01"), "\x16" },
        { SPAN("GET / HTTP/2.0\r\n" FIELDS), "GET / HTTP/2.0" },
        { SPAN("GET / HTTP/1.1\n"), "GET / HTTP/1.1\n" },
        { AFTER_LINE("bad\r\n"), "GET / HTTP/1.1" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parsed p;
        parse(&p, rows[i].head);
        assert_true(p.result >= 400);
        assert_span(slice(&p, p.request.line), rows[i].line);
        parsed_done(&p);
    }
}

static void knows_which_connections_persist(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        bool persists;
    } rows[] = {
        { "GET / HTTP/1.1\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nConnection:\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nConnection: upgrade\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: CLOSE\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: ,close,\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: close, TE\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: keep-alive, close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: keep-alive\r\nX: y\r\nConnection: close\r\n\r\n", false },
        { "GET / HTTP/1.1\r\nConnection: closed\r\n\r\n", true },
        { "GET / HTTP/1.1\r\nX-Connection: close\r\n\r\n", true },
        { "GET / HTTP/1.0\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true },
        { "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
        { "GET / HTTP/1.0\r\nConnection: TE, keep-alive\r\n\r\n", true },
        { "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: close\r\n\r\n", false },
        { "GET / HTTP/1.0\r\nConnection: TE\r\n\r\n", false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct parsed p;
        parse(&p, span_text(rows[i].head));
        assert_int_equal(p.result, PARSED);
        if (http_request_persists(&p.request, p.bytes.at) != rows[i].persists)
            fail_msg("`%s`: expected %d", rows[i].head, rows[i].persists);
        parsed_done(&p);
    }
}

static void joins_the_lines_of_a_list_field(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        const char *list;
    } rows[] = {
        { "Accept: text/html\r\n", "text/html" },
        { "Accept: a/b\r\nHost: a\r\naccept: c/d, e/f\r\n", "a/b, c/d, e/f" },
        { "Accept:\r\nAccept: c/d\r\n", "c/d" },
        { "Accept: a/b\r\nAccept: 0123456789012345678901234567890\r\n", "a/b" },
        { "Host: a\r\n", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char head[256];
        char storage[24];
        struct parsed p;
        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\n%s\r\n", rows[i].fields);
        parse(&p, span_text(head));
        assert_int_equal(p.result, PARSED);
        assert_span(
            http_request_list(&p.request, p.bytes.at, HTTP_FIELD_ACCEPT, storage, sizeof(storage)),
            rows[i].list);
        parsed_done(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_browsers_request),
        cmocka_unit_test(joins_the_lines_of_a_list_field),
        cmocka_unit_test(recognises_every_field_of_the_table_in_any_case_and_no_similar_name),
        cmocka_unit_test(classifies_methods),
        cmocka_unit_test(refuses_a_malformed_request_line),
        cmocka_unit_test(refuses_a_malformed_version_and_other_major_versions),
        cmocka_unit_test(reads_minor_versions),
        cmocka_unit_test(skips_a_few_empty_lines_before_the_request_line),
        cmocka_unit_test(refuses_malformed_fields),
        cmocka_unit_test(keeps_values_as_they_are_and_trims_them),
        cmocka_unit_test(does_not_mistake_similar_names_for_framing_fields),
        cmocka_unit_test(reports_repeated_fields_and_gives_all_their_values),
        cmocka_unit_test(does_not_read_bytes_behind_the_head),
        cmocka_unit_test(needs_more_while_the_beginning_is_valid),
        cmocka_unit_test(applies_every_limit_at_the_first_byte_above_it),
        cmocka_unit_test(accepts_fields_up_to_the_limit),
        cmocka_unit_test(keeps_a_bad_request_line_for_the_log),
        cmocka_unit_test(knows_which_connections_persist),
    };
    return cmocka_run_group_tests_name("http/request", tests, NULL, NULL);
}
