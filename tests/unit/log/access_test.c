/* SPDX-License-Identifier: MIT
 *
 * The access log: the format of its lines, byte for byte.
 */
#include "log/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { WALL_S = 971211336 }; /* 2000-10-10T20:55:36Z */

static const struct log_access_line ordinary = {
    .peer = { "127.0.0.1", 9 },
    .request_line = { "GET / HTTP/1.1", 14 },
    .host = { "example.org", 11 },
    .referer = { "https://example.org/", 20 },
    .user_agent = { "curl/8.0", 8 },
    .status = 200,
    .body_bytes = 308,
    .id = 0x3f2a0123456789bc,
};

static const char ordinary_combined[] =
    "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 308 "
    "\"https://example.org/\" \"curl/8.0\" 3f2a0123456789bc\n";

static void assert_span(struct span got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.at, want, got.len);
}

/* The formats of these tests. */
enum format { LOG_COMBINED, LOG_JSON };

/* A log whose lines stay in the buffer for the test. */
static void start_in_memory(struct log_access *log, struct log_access_sink *sink,
                            enum format format)
{
    static struct log_layout json;
    const struct log_layout_request request = { .format = SPAN("json") };
    char why[LOG_LAYOUT_WHY_MAX];
    assert_true(log_layout_make(&json, &request, why));
    assert_int_equal(log_access_open(sink, "/dev/null", format == LOG_JSON ? &json : NULL, NULL),
                     0);
    assert_int_equal(log_access_start(log, sink), 0);
}

static void stop_in_memory(struct log_access *log)
{
    struct log_access_sink *sink = log->sink;
    log_access_stop(log);
    log_access_close(sink);
}

static void assert_line(enum format format, const struct log_access_line *line, const char *want)
{
    struct log_access_sink sink;
    struct log_access log;
    start_in_memory(&log, &sink, format);
    log_access_add(&log, line, WALL_S);
    assert_span(span_of(log.bytes, log.len), want);
    stop_in_memory(&log);
}

static void writes_a_request_in_both_formats(void **state)
{
    (void)state;
    assert_line(LOG_COMBINED, &ordinary, ordinary_combined);
    assert_line(
        LOG_JSON, &ordinary,
        "{\"time\":\"2000-10-10T20:55:36.000Z\",\"peer\":\"127.0.0.1\","
        "\"request\":\"GET / HTTP/1.1\",\"host\":\"example.org\",\"status\":200,"
        "\"bytes\":308,\"duration_us\":0,\"referer\":\"https://example.org/\",\"agent\":\"curl/"
        "8.0\",\"id\":\"3f2a0123456789bc\"}\n");
}

static void writes_the_protocol_and_the_cipher_of_tls(void **state)
{
    (void)state;
    struct log_access_line line = ordinary;
    line.protocol = SPAN("TLSv1.3");
    line.cipher = SPAN("TLS_AES_128_GCM_SHA256");
    assert_line(LOG_COMBINED, &line,
                "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 308 "
                "\"https://example.org/\" \"curl/8.0\" 3f2a0123456789bc TLSv1.3 "
                "TLS_AES_128_GCM_SHA256\n");
    assert_line(LOG_JSON, &line,
                "{\"time\":\"2000-10-10T20:55:36.000Z\",\"peer\":\"127.0.0.1\","
                "\"request\":\"GET / HTTP/1.1\",\"host\":\"example.org\",\"status\":200,"
                "\"bytes\":308,\"duration_us\":0,\"referer\":\"https://example.org/"
                "\",\"agent\":\"curl/8.0\","
                "\"tls\":\"TLSv1.3\",\"cipher\":\"TLS_AES_128_GCM_SHA256\","
                "\"id\":\"3f2a0123456789bc\"}\n");
}

static void writes_the_proxy_and_the_trace(void **state)
{
    (void)state;
    struct log_access_line line = ordinary;
    line.via = SPAN("10.0.0.1");
    line.traceparent = SPAN("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_line(LOG_COMBINED, &line,
                "127.0.0.1 - - [10/Oct/2000:20:55:36 +0000] \"GET / HTTP/1.1\" 200 308 "
                "\"https://example.org/\" \"curl/8.0\" 3f2a0123456789bc "
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n");
    assert_line(
        LOG_JSON, &line,
        "{\"time\":\"2000-10-10T20:55:36.000Z\",\"peer\":\"127.0.0.1\",\"via\":\"10.0.0.1\","
        "\"request\":\"GET / HTTP/1.1\",\"host\":\"example.org\",\"status\":200,"
        "\"bytes\":308,\"duration_us\":0,\"referer\":\"https://example.org/\",\"agent\":\"curl/"
        "8.0\","
        "\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\","
        "\"id\":\"3f2a0123456789bc\"}\n");
}

static void writes_empty_texts(void **state)
{
    (void)state;
    const struct log_access_line empty = { .status = 408 };
    assert_line(LOG_COMBINED, &empty,
                "- - - [10/Oct/2000:20:55:36 +0000] \"-\" 408 - \"-\" \"-\" "
                "0000000000000000\n");
    assert_line(
        LOG_JSON, &empty,
        "{\"time\":\"2000-10-10T20:55:36.000Z\",\"peer\":\"\",\"request\":\"\",\"host\":\"\","
        "\"status\":408,\"bytes\":0,\"duration_us\":0,\"referer\":\"\",\"agent\":\"\","
        "\"id\":\"0000000000000000\"}\n");
}

static void writes_numbers_of_any_size(void **state)
{
    (void)state;
    const struct log_access_line large = { .status = UINT_MAX,
                                           .body_bytes = UINT64_MAX,
                                           .id = UINT64_MAX };
    assert_line(LOG_COMBINED, &large,
                "- - - [10/Oct/2000:20:55:36 +0000] \"-\" 4294967295 18446744073709551615 "
                "\"-\" \"-\" ffffffffffffffff\n");
}

struct escape_case {
    struct span raw;
    const char *combined;
    const char *json;
};

static void escapes_hostile_bytes(void **state)
{
    (void)state;
    static const struct escape_case cases[] = {
        { { "a\"b\\c", 5 }, "a\\x22b\\x5cc", "a\\u0022b\\u005cc" },
        { { "\r\n\t\0\x1b[2J", 8 },
          "\\x0d\\x0a\\x09\\x00\\x1b[2J",
          "\\u000d\\u000a\\u0009\\u0000\\u001b[2J" },
        { { "\x7f", 1 }, "\\x7f", "\\u007f" },
        { { "gr\xc3\xbc\xc3\x9f", 6 }, "gr\\xc3\\xbc\\xc3\\x9f", "gr\xc3\xbc\xc3\x9f" },
        { { "\xf0\x9f\x8c\x8a", 4 }, "\\xf0\\x9f\\x8c\\x8a", "\xf0\x9f\x8c\x8a" },
        { { "\xc3", 1 }, "\\xc3", "\\u00c3" }, /* ends too early */
        { { "\xc3.", 2 }, "\\xc3.", "\\u00c3." },
        { { "\x80\xbf", 2 }, "\\x80\\xbf", "\\u0080\\u00bf" }, /* no beginning */
        { { "\xc0\xaf", 2 }, "\\xc0\\xaf", "\\u00c0\\u00af" }, /* longer than needed */
        { { "\xe0\x80\xaf", 3 }, "\\xe0\\x80\\xaf", "\\u00e0\\u0080\\u00af" },
        { { "\xed\xa0\x80", 3 }, "\\xed\\xa0\\x80", "\\u00ed\\u00a0\\u0080" }, /* a surrogate */
        { { "\xf4\x90\x80\x80", 4 }, "\\xf4\\x90\\x80\\x80", "\\u00f4\\u0090\\u0080\\u0080" },
        { { "\xc2\x9b", 2 }, "\\xc2\\x9b", "\\u009b" },          /* a C1 control */
        { { "\xe2\x80\xa8", 3 }, "\\xe2\\x80\\xa8", "\\u2028" }, /* a line separator */
        { { "\xe2\x80\xae", 3 }, "\\xe2\\x80\\xae", "\\u202e" }, /* right to left */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct log_access_line line = { .user_agent = cases[i].raw, .status = 200 };
        char want[256];
        (void)snprintf(want, sizeof(want),
                       "- - - [10/Oct/2000:20:55:36 +0000] \"-\" 200 - \"-\" \"%s\" "
                       "0000000000000000\n",
                       cases[i].combined);
        assert_line(LOG_COMBINED, &line, want);
        (void)snprintf(
            want, sizeof(want),
            "{\"time\":\"2000-10-10T20:55:36.000Z\",\"peer\":\"\",\"request\":\"\","
            "\"host\":\"\",\"status\":200,\"bytes\":0,\"duration_us\":0,\"referer\":\"\","
            "\"agent\":\"%s\",\"id\":\"0000000000000000\"}\n",
            cases[i].json);
        assert_line(LOG_JSON, &line, want);
    }
}

/* The peer has no quotes, so a space in it would begin the next field. */
static void escapes_a_space_in_the_peer(void **state)
{
    (void)state;
    const struct log_access_line line = { .peer = SPAN("unix:a b"), .status = 200 };
    assert_line(LOG_COMBINED, &line,
                "unix:a\\x20b - - [10/Oct/2000:20:55:36 +0000] \"-\" 200 - \"-\" \"-\" "
                "0000000000000000\n");
}

static void writes_the_time_of_each_second(void **state)
{
    (void)state;
    static const struct {
        int64_t wall_s;
        const char *stamp;
    } cases[] = {
        { 0, "[01/Jan/1970:00:00:00 +0000]" },
        { 951782399, "[28/Feb/2000:23:59:59 +0000]" },
        { 951782400, "[29/Feb/2000:00:00:00 +0000]" },
        { 1795248000, "[21/Nov/2026:08:00:00 +0000]" },
        { -5, "[01/Jan/1970:00:00:00 +0000]" },
        { INT64_MAX, "[31/Dec/9999:23:59:59 +0000]" },
    };
    struct log_access_sink sink;
    struct log_access log;
    start_in_memory(&log, &sink, LOG_COMBINED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        log.len = 0;
        log_access_add(&log, &ordinary, cases[i].wall_s);
        assert_memory_equal(log.bytes + strlen("127.0.0.1 - - "), cases[i].stamp, 28);
    }
    stop_in_memory(&log);
}

/* Two texts are too long and share the space evenly. The others stay whole. The request is whole
 * only because the short texts leave it their shares. */
static void cuts_the_longest_texts_of_a_long_line(void **state)
{
    (void)state;
    static char many[40000];
    memset(many, 'x', sizeof(many));
    memset(many + 20000, '\x01', 20000);
    const struct log_access_line line = {
        .peer = SPAN("::1"),
        .request_line = { many, 5300 },
        .host = SPAN("h"),
        .referer = { many + 20000, 20000 }, /* all escapes */
        .user_agent = { many, 40000 },
        .status = 431,
    };
    for (int format = LOG_COMBINED; format <= LOG_JSON; format++) {
        struct log_access_sink sink;
        struct log_access log;
        start_in_memory(&log, &sink, (enum format)format);
        log_access_add(&log, &line, WALL_S);
        assert_true(log.len <= LOG_LINE_MAX);
        assert_true(log.len > LOG_LINE_MAX - 320); /* only as much is cut as needed */
        assert_int_equal(log.bytes[log.len - 1], '\n');
        log.bytes[log.len - 1] = '\0';
        assert_non_null(strstr(log.bytes, "::1"));
        const char *request = strstr(log.bytes, "\"xxx");
        assert_non_null(request);
        assert_int_equal(strspn(request + 1, "x"), 5300);
        if (format == LOG_JSON)
            assert_non_null(strstr(log.bytes, "\"host\":\"h\""));
        const char *referer = strstr(log.bytes, format == LOG_JSON ? "\\u0001...\"" : "\\x01...\"");
        assert_non_null(referer);
        assert_non_null(strstr(referer, "xxx...\""));
        stop_in_memory(&log);
    }
}

static void keeps_the_longest_line_within_the_limit(void **state)
{
    (void)state;
    static char many[40000];
    memset(many, 'x', sizeof(many));
    const struct span text = { many, sizeof(many) };
    struct log_access_line line = {
        .peer = text,
        .request_line = text,
        .host = text,
        .referer = text,
        .user_agent = text,
        .status = UINT_MAX,
        .body_bytes = UINT64_MAX,
        .id = UINT64_MAX,
        .protocol = { "TLSv1.3", 7 },
        .cipher = { "ECDHE-ECDSA-CHACHA20-POLY1305", 29 },
    };
    for (int turn = 0; turn < 4; turn++) {
        struct log_access_sink sink;
        struct log_access log;
        start_in_memory(&log, &sink, turn % 2 == 0 ? LOG_COMBINED : LOG_JSON);
        log_access_add(&log, &line, WALL_S);
        assert_true(log.len > LOG_LINE_MAX - 400 && log.len <= LOG_LINE_MAX);
        stop_in_memory(&log);
        if (turn < 1)
            continue;
        line.via = SPAN("2001:db8:ffff:ffff:ffff:ffff:255.255.255.255");
        line.traceparent = SPAN("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
}

static void a_log_that_is_off_costs_nothing(void **state)
{
    (void)state;
    struct log_access_sink sink;
    struct log_access log = { 0 };
    assert_int_equal(log_access_open(&sink, "off", NULL, NULL), 0);
    assert_int_equal(log_access_start(&log, &sink), 0);
    assert_null(log.bytes);
    log_access_add(&log, &ordinary, WALL_S);
    assert_int_equal(log.len, 0);
    assert_int_equal(log_access_replace(&sink, STDERR_FILENO), 0);
    log_access_flush(&log);
    log_access_stop(&log);
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(sink.dropped, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_request_in_both_formats),
        cmocka_unit_test(writes_the_protocol_and_the_cipher_of_tls),
        cmocka_unit_test(writes_the_proxy_and_the_trace),
        cmocka_unit_test(writes_empty_texts),
        cmocka_unit_test(writes_numbers_of_any_size),
        cmocka_unit_test(escapes_hostile_bytes),
        cmocka_unit_test(escapes_a_space_in_the_peer),
        cmocka_unit_test(writes_the_time_of_each_second),
        cmocka_unit_test(cuts_the_longest_texts_of_a_long_line),
        cmocka_unit_test(keeps_the_longest_line_within_the_limit),
        cmocka_unit_test(a_log_that_is_off_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
