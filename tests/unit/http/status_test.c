/* SPDX-License-Identifier: MIT
 *
 * The status table: each code's line, and the form of its sentence.
 */
#include "http/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    enum http_status status;
    const char *line;
};

/* RFC 9110 section 15 and RFC 7725, written down a second time. */
static const struct row rows[] = {
    { HTTP_CONTINUE, "HTTP/1.1 100 Continue\r\n" },
    { HTTP_OK, "HTTP/1.1 200 OK\r\n" },
    { HTTP_NO_CONTENT, "HTTP/1.1 204 No Content\r\n" },
    { HTTP_PARTIAL_CONTENT, "HTTP/1.1 206 Partial Content\r\n" },
    { HTTP_MOVED_PERMANENTLY, "HTTP/1.1 301 Moved Permanently\r\n" },
    { HTTP_FOUND, "HTTP/1.1 302 Found\r\n" },
    { HTTP_SEE_OTHER, "HTTP/1.1 303 See Other\r\n" },
    { HTTP_NOT_MODIFIED, "HTTP/1.1 304 Not Modified\r\n" },
    { HTTP_TEMPORARY_REDIRECT, "HTTP/1.1 307 Temporary Redirect\r\n" },
    { HTTP_PERMANENT_REDIRECT, "HTTP/1.1 308 Permanent Redirect\r\n" },
    { HTTP_BAD_REQUEST, "HTTP/1.1 400 Bad Request\r\n" },
    { HTTP_UNAUTHORIZED, "HTTP/1.1 401 Unauthorized\r\n" },
    { HTTP_FORBIDDEN, "HTTP/1.1 403 Forbidden\r\n" },
    { HTTP_NOT_FOUND, "HTTP/1.1 404 Not Found\r\n" },
    { HTTP_METHOD_NOT_ALLOWED, "HTTP/1.1 405 Method Not Allowed\r\n" },
    { HTTP_REQUEST_TIMEOUT, "HTTP/1.1 408 Request Timeout\r\n" },
    { HTTP_GONE, "HTTP/1.1 410 Gone\r\n" },
    { HTTP_PRECONDITION_FAILED, "HTTP/1.1 412 Precondition Failed\r\n" },
    { HTTP_CONTENT_TOO_LARGE, "HTTP/1.1 413 Content Too Large\r\n" },
    { HTTP_URI_TOO_LONG, "HTTP/1.1 414 URI Too Long\r\n" },
    { HTTP_RANGE_NOT_SATISFIABLE, "HTTP/1.1 416 Range Not Satisfiable\r\n" },
    { HTTP_EXPECTATION_FAILED, "HTTP/1.1 417 Expectation Failed\r\n" },
    { HTTP_MISDIRECTED_REQUEST, "HTTP/1.1 421 Misdirected Request\r\n" },
    { HTTP_TOO_MANY_REQUESTS, "HTTP/1.1 429 Too Many Requests\r\n" },
    { HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, "HTTP/1.1 431 Request Header Fields Too Large\r\n" },
    { HTTP_UNAVAILABLE_FOR_LEGAL_REASONS, "HTTP/1.1 451 Unavailable For Legal Reasons\r\n" },
    { HTTP_INTERNAL_SERVER_ERROR, "HTTP/1.1 500 Internal Server Error\r\n" },
    { HTTP_NOT_IMPLEMENTED, "HTTP/1.1 501 Not Implemented\r\n" },
    { HTTP_SERVICE_UNAVAILABLE, "HTTP/1.1 503 Service Unavailable\r\n" },
    { HTTP_HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 505 HTTP Version Not Supported\r\n" },
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static void assert_span_is(struct span got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.at, expected, got.len);
}

static void each_code_has_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++)
        assert_span_is(http_status_line(rows[i].status), rows[i].line);
}

static void the_table_has_no_other_code(void **state)
{
    (void)state;
    static const int codes[] = {
#define STATUS(code, name, reason, sentence) code,
#include "http/status.def"
#undef STATUS
    };
    assert_int_equal(sizeof(codes) / sizeof(codes[0]), ROW_COUNT);
    for (size_t i = 0; i < ROW_COUNT; i++)
        assert_int_equal(codes[i], (int)rows[i].status);
}

static void the_line_has_the_form_of_rfc_9112_section_4(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char number[16];
        struct span line = http_status_line(rows[i].status);
        (void)snprintf(number, sizeof number, " %03d ", (int)rows[i].status);
        assert_memory_equal(line.at + 8, number, 5);
        for (size_t at = 0; at < line.len - 2; at++)
            assert_in_range(line.at[at], ' ', '~');
    }
}

static void codes_ascend_and_are_in_the_classes_of_http(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        assert_in_range(rows[i].status, 100, 599);
        if (i > 0)
            assert_true(rows[i].status > rows[i - 1].status);
    }
}

/* A browser shows the answer of an error or a redirect. It never shows that of a 204 or a 304. */
static void only_errors_and_redirects_have_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct span sentence = http_status_sentence(rows[i].status);
        bool seen = rows[i].status >= 300 && rows[i].status != HTTP_NOT_MODIFIED;
        assert_int_equal(sentence.len > 0, seen);
        if (seen)
            assert_int_equal(sentence.at[sentence.len - 1], '.');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_line),
        cmocka_unit_test(the_table_has_no_other_code),
        cmocka_unit_test(the_line_has_the_form_of_rfc_9112_section_4),
        cmocka_unit_test(codes_ascend_and_are_in_the_classes_of_http),
        cmocka_unit_test(only_errors_and_redirects_have_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
