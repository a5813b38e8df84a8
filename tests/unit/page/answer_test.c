/* SPDX-License-Identifier: MIT
 *
 * The statistics page's answers: the metrics format that Accept prefers, the hosts that mean this
 * machine, files, and /healthz. tests/e2e/test_page.py tests the other answers from outside.
 */
#include "page/answer.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void sends_openmetrics_when_accept_prefers_it(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        bool open;
    } rows[] = {
        { "", false },
        { "*/*", false },
        { "text/plain", false },
        { "text/html, application/xhtml+xml, */*;q=0.8", false },
        { "application/openmetrics-text", true },
        { "Application/OpenMetrics-Text; version=1.0.0", true },
        { "application/openmetrics-text; version=1.0.0; charset=utf-8", true },
        { "application/openmetrics-text; version=0.0.1", false },
        { "application/openmetrics-text; version=2.0.0, text/plain", false },
        { "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.5",
          true },
        { "application/openmetrics-text;q=0.3, text/plain;version=0.0.4;q=0.5", false },
        { "application/openmetrics-text;q=0", false },
        { "application/openmetrics-text;q=0.5, */*;q=0.1", true },
        { "application/openmetrics-text;q=0.5;version=1.0.0,application/openmetrics-text;version="
          "0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
          true },
        { "application/*", true },
        { ";,;q=,=", false },
        { "application/openmetrics-text;", true },
        { "application/openmetrics-text;q=nonsense", false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        bool open = page_answer_is_openmetrics(guard_text(&guard, rows[i].accept));
        guard_done(&guard);
        if (open != rows[i].open)
            fail_msg("`%s`", rows[i].accept);
    }
}

static void assert_local(const char *const *hosts, bool expected)
{
    for (; *hosts; hosts++) {
        struct guard guard;
        bool local = page_answer_host_is_local(guard_text(&guard, *hosts));
        guard_done(&guard);
        if (local != expected)
            fail_msg("`%s`", *hosts);
    }
}

static void knows_the_names_of_this_machine(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "localhost", "LocalHost", "127.0.0.1", "127.255.255.255", "[::1]", "[0:0:0:0:0:0:0:1]", NULL
    };
    assert_local(hosts, true);
}

static void refuses_every_other_host(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "",
        "localhost.",
        "localhost.example",
        "example",
        "126.0.0.1",
        "127.0.0",
        "127.0.0.1.example",
        "127.1",
        "0.0.0.0",
        "::1",
        "[127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "[::1",
        "::1]",
        "[]",
        "[",
        "[::1%lo]",
        "10.0.0.1",
        "0127.0.0.1",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0001]",
        NULL,
    };
    assert_local(hosts, false);
}

static void assert_health(struct page_shared *shared, enum stats_state state, const char *line,
                          const char *body)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct http_request parsed = { 0 };
    struct page_answer answer;
    enum http_status status;
    struct guard guard;
    struct span bytes = guard_text(&guard, request);
    stats_segment_set_state(shared->segment, state);
    assert_int_equal(http_request_parse(&parsed, bytes, &status), HTTP_PARSED);
    page_answer_request(&answer, shared, &parsed, bytes.at, true, 1);
    assert_true(span_starts(span_of(answer.head, answer.head_len), span_text(line)));
    assert_true(span_equal(answer.body, span_text(body)));
    assert_false(answer.close);
    page_answer_drop(&answer);
    guard_done(&guard);
}

static void healthz_reports_whether_the_server_serves(void **state)
{
    (void)state;
    struct stats_segment segment;
    int why;
    assert_int_equal(stats_segment_create(&segment, &why), 0);
    struct page_shared shared = { .segment = &segment };
    assert_int_equal(page_password_init(&shared.password, "$and$none$knows"), 0);
    assert_health(&shared, STATS_STARTING, "HTTP/1.1 503 ", "starting\n");
    assert_health(&shared, STATS_SERVING, "HTTP/1.1 200 ", "serving\n");
    assert_health(&shared, STATS_STOPPING, "HTTP/1.1 503 ", "stopping\n");
    stats_segment_remove(&segment);
}

/* Answers a request for /page.css with one more field line. */
static void answer_css(struct page_answer *answer, const char *field)
{
    struct page_shared shared = { .wall_s = 784111777 };
    struct http_request parsed = { 0 };
    enum http_status status;
    char text[256];
    (void)snprintf(text, sizeof(text), "GET /page.css HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                   field);
    assert_int_equal(http_request_parse(&parsed, span_text(text), &status), HTTP_PARSED);
    page_answer_request(answer, &shared, &parsed, text, true, 1);
    assert_non_null(
        memmem(answer->head, answer->head_len, "\r\nX-Content-Type-Options: nosniff\r\n", 35));
}

static void assert_answer(const char *field, const char *line, bool body)
{
    struct page_answer answer;
    answer_css(&answer, field);
    assert_true(span_starts(span_of(answer.head, answer.head_len), span_text(line)));
    assert_int_equal(answer.body.len > 0, body);
}

static void a_file_answers_conditions(void **state)
{
    (void)state;
    assert_answer("", "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n", true);
    assert_answer("If-None-Match: *\r\n", "HTTP/1.1 304 ", false);
    assert_answer("If-None-Match: \"x\"\r\n", "HTTP/1.1 200 ", true);
    assert_answer("If-Match: *\r\n", "HTTP/1.1 200 ", true);
    assert_answer("If-Match: \"x\"\r\n", "HTTP/1.1 412 ", true);
}

/* The page reads no body. What could be one in the eyes of a proxy must never be read as the next
 * request. */
static void a_body_ends_the_connection(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *line;
        bool close;
    } rows[] = {
        { "", "HTTP/1.1 200 ", false },
        { "Content-Length: 0\r\n", "HTTP/1.1 200 ", false },
        { "Content-Length: 5\r\n", "HTTP/1.1 200 ", true },
        { "Transfer-Encoding: chunked\r\n", "HTTP/1.1 200 ", true },
        { "Content-Length: 0\r\nContent-Length: 5\r\n", "HTTP/1.1 400 ", true },
        { "Content-Length: +5\r\n", "HTTP/1.1 400 ", true },
        { "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 400 ", true },
        { "Transfer-Encoding: gzip\r\n", "HTTP/1.1 501 ", true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct page_answer answer;
        answer_css(&answer, rows[i].fields);
        if (answer.close != rows[i].close ||
            !span_starts(span_of(answer.head, answer.head_len), span_text(rows[i].line)))
            fail_msg("`%s`", rows[i].fields);
    }
}

/* Without a line that allows more, a client of HTTP/1.0 reads to the end of the connection. */
static void an_answer_to_http_1_0_ends_the_connection(void **state)
{
    (void)state;
    static const char request[] = "GET /page.css HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    struct page_shared shared = { .wall_s = 784111777 };
    struct http_request parsed = { 0 };
    struct page_answer answer;
    enum http_status status;
    assert_int_equal(http_request_parse(&parsed, span_text(request), &status), HTTP_PARSED);
    page_answer_request(&answer, &shared, &parsed, request, true, 1);
    assert_non_null(memmem(answer.head, answer.head_len, "\r\nConnection: close\r\n", 21));
    assert_true(answer.close);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_openmetrics_when_accept_prefers_it),
        cmocka_unit_test(knows_the_names_of_this_machine),
        cmocka_unit_test(refuses_every_other_host),
        cmocka_unit_test(a_file_answers_conditions),
        cmocka_unit_test(a_body_ends_the_connection),
        cmocka_unit_test(an_answer_to_http_1_0_ends_the_connection),
        cmocka_unit_test(healthz_reports_whether_the_server_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
