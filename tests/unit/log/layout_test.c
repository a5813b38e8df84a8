/* SPDX-License-Identifier: MIT
 *
 * Formats of operators, fields that are added to `combined` and `json`, and samples.
 */
#include "log/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <unistd.h>

static const struct log_access_line ordinary = {
    .peer = { "192.0.2.1", 9 },
    .request_line = { "GET /a%20b?q=1 HTTP/1.1", 23 },
    .host = { "example.org", 11 },
    .referer = { "https://example.org/", 20 },
    .user_agent = { "curl 8.0", 8 },
    .status = 200,
    .body_bytes = 308,
    .id = 0x3f2a0123456789bc,
};

static const struct log_access_details details = {
    .wall_ms = 971211336789, /* 2000-10-10T20:55:36.789Z */
    .duration_ns = 2345678901,
    .receive_ns = 2000000000,
    .waited_ns = 1500000000,
    .cache = LOG_CACHE_HIT,
    .site = { "main", 4 },
    .user = { "ann", 3 },
};

static struct log_layout layout;

static void make(const char *format, const char *const *fields, unsigned sample)
{
    const struct log_layout_request request = { .format = span_text(format),
                                                .fields = fields,
                                                .sample = sample };
    char why[LOG_LAYOUT_WHY_MAX] = "";
    if (!log_layout_make(&layout, &request, why))
        fail_msg("%s: %s", format, why);
}

/* Writes a line with `layout`, and compares it. */
static void assert_line(const struct log_access_line *line, const struct log_access_details *more,
                        const char *want)
{
    struct log_access_sink sink;
    struct log_access log;
    assert_int_equal(log_access_open(&sink, "/dev/null", &layout, NULL), 0);
    assert_int_equal(log_access_start(&log, &sink), 0);
    log_access_add_detailed(&log, line, more);
    if (log.len != strlen(want) || memcmp(log.bytes, want, log.len) != 0)
        fail_msg("got  %.*swant %s", (int)log.len, log.bytes, want);
    log_access_stop(&log);
    log_access_close(&sink);
}

static void assert_written(const char *format, const char *want)
{
    make(format, NULL, 1);
    assert_line(&ordinary, &details, want);
}

static void writes_every_variable_of_nginx(void **state)
{
    (void)state;
    assert_written("$remote_addr - $remote_user [$time_local] \"$request\" $status "
                   "$body_bytes_sent \"$http_referer\" \"$http_user_agent\"",
                   "192.0.2.1 - ann [10/Oct/2000:20:55:36 +0000] \"GET /a%20b?q=1 HTTP/1.1\" 200 "
                   "308 \"https://example.org/\" \"curl 8.0\"\n");
    assert_written("$time_iso8601 $time_ms $msec $request_time $request_time_us",
                   "2000-10-10T20:55:36+00:00 2000-10-10T20:55:36.789Z 971211336.789 2.345 "
                   "2345678\n");
    assert_written("$request_method $request_uri $uri $args $server_protocol $scheme",
                   "GET /a%20b?q=1 /a%20b q=1 HTTP/1.1 http\n");
    assert_written("$host $server_name $request_id $cache $sample $receive_us $send_us $disk_us",
                   "example.org main 3f2a0123456789bc hit 1 2000000 345678 1500000\n");
    assert_written("${remote_addr}x $$1 $realip_remote_addr $ssl_protocol $ssl_cipher",
                   "192.0.2.1x $1 - - -\n");
}

static void writes_every_directive_of_apache(void **state)
{
    (void)state;
    assert_written("%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\" %D",
                   "192.0.2.1 - ann [10/Oct/2000:20:55:36 +0000] \"GET /a%20b?q=1 HTTP/1.1\" 200 "
                   "308 \"https://example.org/\" \"curl 8.0\" 2345678\n");
    assert_written("%a %m %U %q %H %V %v %s %B %T %{us}T %{sec}t %L 100%%",
                   "192.0.2.1 GET /a%20b ?q=1 HTTP/1.1 example.org main 200 308 2 2345678 "
                   "971211336 3f2a0123456789bc 100%\n");
    struct log_access_line empty = ordinary;
    empty.body_bytes = 0;
    make("%b %B", NULL, 1);
    assert_line(&empty, &details, "- 0\n");
}

static void removes_the_quotes_of_other_configurations(void **state)
{
    (void)state;
    assert_written("'$status \"$request\"'", "200 \"GET /a%20b?q=1 HTTP/1.1\"\n");
    assert_written("\"%h \\\"%r\\\" %s\"", "192.0.2.1 \"GET /a%20b?q=1 HTTP/1.1\" 200\n");
    assert_written("\"$status\"\\t\"$request\"", "\"200\"\t\"GET /a%20b?q=1 HTTP/1.1\"\n");
}

static void escapes_what_could_forge_a_value(void **state)
{
    (void)state;
    struct log_access_line hostile = ordinary;
    hostile.user_agent = SPAN("a\" 200\n\\");
    make("\"$http_user_agent\" $http_user_agent $status", NULL, 1);
    assert_line(&hostile, &details, "\"a\\x22 200\\x0a\\x5c\" a\\x22\\x20200\\x0a\\x5c 200\n");
    make("$status\t$http_user_agent\t$status", NULL, 1);
    assert_line(&hostile, &details, "200\ta\\x22 200\\x0a\\x5c\t200\n");
    make("{\"agent\":\"$http_user_agent\",\"user\":\"$remote_user\",\"ms\":$msec}", NULL, 1);
    struct log_access_details nobody = details;
    nobody.user = SPAN("");
    assert_line(&hostile, &nobody,
                "{\"agent\":\"a\\u0022 200\\u000a\\u005c\",\"user\":\"\",\"ms\":971211336.789}\n");
}

static void writes_fields_that_weir_keeps(void **state)
{
    (void)state;
    make("$http_range $http_accept_encoding %{Origin}i $http_referer", NULL, 1);
    assert_int_equal(layout.fields, 1u << HTTP_FIELD_RANGE | 1u << HTTP_FIELD_ACCEPT_ENCODING |
                                        1u << HTTP_FIELD_ORIGIN);
    struct log_access_details more = details;
    more.field[log_layout_slot(&layout, HTTP_FIELD_RANGE)] = SPAN("bytes=0-1");
    more.field[log_layout_slot(&layout, HTTP_FIELD_ACCEPT_ENCODING)] = SPAN("gzip, br");
    assert_line(&ordinary, &more, "bytes=0-1 gzip,\\x20br - https://example.org/\n");
}

static void adds_fields_to_combined_and_json(void **state)
{
    (void)state;
    static const char *const all[] = { "via",      "user",     "tls",    "time", "site",
                                       "scheme",   "protocol", "phases", "id",   "host",
                                       "duration", "disk",     "cache",  NULL };
    make("combined", all, 10);
    assert_line(
        &ordinary, &details,
        "192.0.2.1 - - [10/Oct/2000:20:55:36 +0000] \"GET /a%20b?q=1 HTTP/1.1\" 200 308 "
        "\"https://example.org/\" \"curl 8.0\" 3f2a0123456789bc cache=hit "
        "disk_us=1500000 duration_us=2345678 host=example.org receive_us=2000000 send_us=345678 "
        "protocol=HTTP/1.1 scheme=http site=main time=2000-10-10T20:55:36.789Z user=ann "
        "sample=10\n");
    make("json", all, 10);
    assert_line(
        &ordinary, &details,
        "{\"time\":\"2000-10-10T20:55:36.789Z\",\"peer\":\"192.0.2.1\","
        "\"request\":\"GET /a%20b?q=1 HTTP/1.1\",\"host\":\"example.org\",\"status\":200,"
        "\"bytes\":308,\"duration_us\":2345678,\"referer\":\"https://example.org/\","
        "\"agent\":\"curl 8.0\",\"cache\":\"hit\",\"disk_us\":1500000,"
        "\"receive_us\":2000000,\"send_us\":345678,\"protocol\":\"HTTP/1.1\",\"scheme\":\"http\","
        "\"site\":\"main\",\"user\":\"ann\",\"sample\":10,"
        "\"id\":\"3f2a0123456789bc\"}\n");
}

/* The line of combined with a field differs from the plain one by that field alone. */
static void combined_with_a_field_begins_as_combined(void **state)
{
    (void)state;
    static const char *const cache[] = { "cache", NULL };
    struct log_access_line line = ordinary;
    line.protocol = SPAN("TLSv1.3");
    line.cipher = SPAN("TLS_AES_128_GCM_SHA256");
    line.traceparent = SPAN("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    line.body_bytes = 0;
    line.referer = SPAN("");
    struct log_access_sink sink;
    struct log_access log;
    char want[1024];
    assert_int_equal(log_access_open(&sink, "/dev/null", NULL, NULL), 0);
    assert_int_equal(log_access_start(&log, &sink), 0);
    log_access_add(&log, &line, details.wall_ms / 1000);
    (void)snprintf(want, sizeof(want), "%.*s cache=hit\n", (int)log.len - 1, log.bytes);
    log_access_stop(&log);
    log_access_close(&sink);
    make("combined", cache, 1);
    assert_line(&line, &details, want);
}

static void assert_refused(const char *format, const char *want)
{
    const struct log_layout_request request = { .format = span_text(format) };
    char why[LOG_LAYOUT_WHY_MAX] = "";
    if (log_layout_make(&layout, &request, why))
        fail_msg("%s is accepted", format);
    if (!strstr(why, want))
        fail_msg("%s: %s", format, why);
}

static void refuses_what_it_does_not_know(void **state)
{
    (void)state;
    assert_refused("$remote_adr", "there is no variable $remote_adr; did you mean $remote_addr?");
    assert_refused("$upstream_response_time", "there is no variable $upstream_response_time");
    assert_refused("$http_cookie", "does not keep the field `cookie`");
    assert_refused("$http_authorization", "has the password");
    assert_refused("%{Authorization}i", "has the password");
    assert_refused("%X", "there is no directive %X");
    assert_refused("%", "there is no directive %");
    assert_refused("%>", "there is no directive %");
    assert_refused("%{", "there is no directive %{}");
    assert_refused("%{Foo", "there is no directive %{Foo}");
    assert_refused("%{Foo}o", "there is no directive %{Foo}o");
    assert_refused("$", "no name follows a `$`");
    assert_refused("${status", "has no `}`");
    assert_refused("a $ b", "no name follows a `$`");
    assert_refused("$$ %%", "it has no variable");
    assert_refused("$status\n", "control character");
    char long_text[LOG_LAYOUT_TEXT_MAX + 16];
    memset(long_text, 'x', sizeof(long_text));
    memcpy(long_text, "$status ", 8);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_refused(long_text, "more than 1023 bytes");
    char many[LOG_TEXTS_MAX * 2 + 3];
    for (unsigned i = 0; i < LOG_TEXTS_MAX + 1; i++)
        memcpy(many + (size_t)2 * i, "%s", 2);
    many[sizeof(many) - 1] = '\0';
    assert_refused(many, "more than 48 variables");
    assert_refused("$http_host$http_connection$http_range$http_accept$http_origin$http_expect"
                   "$http_if_range$http_if_match$http_if_none_match",
                   "more than 8 fields");
}

/* A pipe takes a line of PIPE_BUF bytes. The longest format has space for its values there. */
static void the_longest_format_fits_into_a_pipe(void **state)
{
    (void)state;
    static char value[40000];
    char format[LOG_TEXTS_MAX * 20];
    size_t len = 0;
    memset(value, '"', sizeof(value));
    for (unsigned i = 0; i < LOG_TEXTS_MAX; i++)
        len += (size_t)snprintf(format + len, sizeof(format) - len, "%s",
                                i % 2 == 0 ? "$request xxxxxxxx" : "$time_ms xxxxxxxxx");
    make(format, NULL, 1);
    struct log_access_line line = ordinary;
    line.request_line = span_of(value, sizeof(value));
    struct log_access_sink sink;
    struct log_access log;
    assert_int_equal(log_access_open(&sink, "/dev/null", &layout, NULL), 0);
    sink.kind = LOG_SINK_PIPE;
    assert_int_equal(log_access_start(&log, &sink), 0);
    log_access_add_detailed(&log, &line, &details);
    assert_true(log.len > 0 && log.len <= PIPE_BUF);
    assert_int_equal(log.bytes[log.len - 1], '\n');
    assert_int_equal(sink.dropped, 0);
    log_access_stop(&log);
    log_access_close(&sink);
}

/* Ids follow each other by this step (session/thread.h). */
static void a_sample_takes_errors_and_its_share_of_the_rest(void **state)
{
    (void)state;
    uint64_t id = 42;
    unsigned taken = 0;
    make("combined", NULL, 10);
    for (unsigned i = 0; i < 10000; i++) {
        id += UINT64_C(0x9e3779b97f4a7c15);
        taken += log_layout_takes(&layout, 200, id);
        assert_true(log_layout_takes(&layout, 404, id));
        assert_true(log_layout_takes(&layout, 500, id));
    }
    assert_in_range(taken, 990, 1010);
    struct log_access_line error = ordinary;
    error.status = 404;
    assert_line(&error, &details,
                "192.0.2.1 - - [10/Oct/2000:20:55:36 +0000] \"GET /a%20b?q=1 HTTP/1.1\" 404 308 "
                "\"https://example.org/\" \"curl 8.0\" 3f2a0123456789bc sample=1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_every_variable_of_nginx),
        cmocka_unit_test(writes_every_directive_of_apache),
        cmocka_unit_test(removes_the_quotes_of_other_configurations),
        cmocka_unit_test(escapes_what_could_forge_a_value),
        cmocka_unit_test(writes_fields_that_weir_keeps),
        cmocka_unit_test(adds_fields_to_combined_and_json),
        cmocka_unit_test(combined_with_a_field_begins_as_combined),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(the_longest_format_fits_into_a_pipe),
        cmocka_unit_test(a_sample_takes_errors_and_its_share_of_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
