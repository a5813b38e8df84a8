/* SPDX-License-Identifier: MIT
 *
 * Access-log lines of requests with any bytes. Each request is one line of bounded length
 * without control bytes. A JSON line is valid JSON, and a `combined` line has its fields in
 * place. Small strict readers check that. They share no code with the writer. SEED=n replays a
 * run.
 */
#include "log/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <time.h>

enum { LINES = 8 * 1000, TEXT_MAX = 30 * 1000 };

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static unsigned below(unsigned bound)
{
    return (unsigned)((next_random() >> 16) % bound);
}

/* Strict readers. Each removes what it reads from the front of *in. */

static bool take(struct span *in, const char *literal)
{
    if (!span_starts(*in, span_text(literal)))
        return false;
    *in = span_skip(*in, strlen(literal));
    return true;
}

static bool take_digits(struct span *in, size_t least, size_t most)
{
    size_t count = 0;
    while (count < in->len && in->at[count] >= '0' && in->at[count] <= '9')
        count++;
    *in = span_skip(*in, count);
    return count >= least && count <= most;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool take_hex(struct span *in, unsigned digits)
{
    for (unsigned i = 0; i < digits; i++) {
        if (in->len == 0 || !is_hex(in->at[0]))
            return false;
        *in = span_skip(*in, 1);
    }
    return true;
}

/* A UTF-8 character above ASCII, by the table of RFC 3629 section 4. */
static bool take_character(struct span *in)
{
    static const struct {
        unsigned char first[2], second[2], len;
    } rows[] = {
        { { 0xc2, 0xdf }, { 0x80, 0xbf }, 2 }, { { 0xe0, 0xe0 }, { 0xa0, 0xbf }, 3 },
        { { 0xe1, 0xec }, { 0x80, 0xbf }, 3 }, { { 0xed, 0xed }, { 0x80, 0x9f }, 3 },
        { { 0xee, 0xef }, { 0x80, 0xbf }, 3 }, { { 0xf0, 0xf0 }, { 0x90, 0xbf }, 4 },
        { { 0xf1, 0xf3 }, { 0x80, 0xbf }, 4 }, { { 0xf4, 0xf4 }, { 0x80, 0x8f }, 4 },
    };
    const unsigned char *at = (const unsigned char *)in->at;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (at[0] < rows[i].first[0] || at[0] > rows[i].first[1])
            continue;
        if (in->len < rows[i].len || at[1] < rows[i].second[0] || at[1] > rows[i].second[1])
            return false;
        if (at[0] == 0xc2 && at[1] < 0xa0) /* C1 controls */
            return false;
        for (unsigned j = 2; j < rows[i].len; j++)
            if (at[j] < 0x80 || at[j] > 0xbf)
                return false;
        *in = span_skip(*in, rows[i].len);
        return true;
    }
    return false;
}

/* A JSON string (RFC 8259 section 7), of which the log uses only \uHHHH. */
static bool take_json_string(struct span *in)
{
    if (!take(in, "\""))
        return false;
    while (in->len > 0 && in->at[0] != '"') {
        const unsigned char c = (unsigned char)in->at[0];
        if (c < 0x20 || c == 0x7f)
            return false;
        if (c == '\\') {
            if (!take(in, "\\u") || !take_hex(in, 4))
                return false;
        } else if (c >= 0x80) {
            if (!take_character(in))
                return false;
        } else {
            *in = span_skip(*in, 1);
        }
    }
    return take(in, "\"");
}

static bool is_json_line(struct span in)
{
    return take(&in, "{\"time\":\"") && take_digits(&in, 4, 4) && take(&in, "-") &&
           take_digits(&in, 2, 2) && take(&in, "-") && take_digits(&in, 2, 2) && take(&in, "T") &&
           take_digits(&in, 2, 2) && take(&in, ":") && take_digits(&in, 2, 2) && take(&in, ":") &&
           take_digits(&in, 2, 2) && take(&in, ".000Z\",\"peer\":") && take_json_string(&in) &&
           take(&in, ",\"request\":") && take_json_string(&in) && take(&in, ",\"host\":") &&
           take_json_string(&in) && take(&in, ",\"status\":") && take_digits(&in, 1, 10) &&
           take(&in, ",\"bytes\":") && take_digits(&in, 1, 20) &&
           take(&in, ",\"duration_us\":0,\"referer\":") && take_json_string(&in) &&
           take(&in, ",\"agent\":") && take_json_string(&in) && take(&in, ",\"id\":\"") &&
           take_hex(&in, 16) && take(&in, "\"}") && in.len == 0;
}

/* Printable ASCII up to `end`, in which a backslash begins \xHH. Never empty. */
static bool take_text(struct span *in, char end)
{
    bool any = false;
    while (in->len > 0 && in->at[0] != end) {
        any = true;
        if (in->at[0] < 0x20 || in->at[0] > 0x7e)
            return false;
        if (in->at[0] != '\\')
            *in = span_skip(*in, 1);
        else if (!take(in, "\\x") || !take_hex(in, 2))
            return false;
    }
    return any && in->len > 0;
}

static bool take_quoted(struct span *in)
{
    return take(in, "\"") && take_text(in, '"') && take(in, "\"");
}

static bool is_combined_line(struct span in)
{
    if (!take_text(&in, ' ') || !take(&in, " - - [") || !take_digits(&in, 2, 2) || !take(&in, "/"))
        return false;
    return take_text(&in, '/') && take(&in, "/") && take_digits(&in, 4, 4) && take(&in, ":") &&
           take_digits(&in, 2, 2) && take(&in, ":") && take_digits(&in, 2, 2) && take(&in, ":") &&
           take_digits(&in, 2, 2) && take(&in, " +0000] ") && take_quoted(&in) && take(&in, " ") &&
           take_digits(&in, 1, 10) && take(&in, " ") &&
           (take(&in, "- ") || (take_digits(&in, 1, 20) && take(&in, " "))) && take_quoted(&in) &&
           take(&in, " ") && take_quoted(&in) && take(&in, " ") && take_hex(&in, 16) && in.len == 0;
}

/* A text of one of several kinds: any bytes, mostly harmless, mostly UTF-8, or pieces with a
 * meaning in a log. It is mostly short and sometimes far too long. */
static struct span random_text(char bytes[TEXT_MAX])
{
    static const char *const pieces[] = { "\"",
                                          "\\",
                                          "\\x",
                                          "\r\n",
                                          "\xc3\xa9",
                                          "\xe2\x82\xac",
                                          "\xf0\x9f\x8c\x8a",
                                          "\xe2\x80",
                                          "\xc2\x85",
                                          "\xed\xa0\x80",
                                          "\x1b]0;",
                                          "a",
                                          " " };
    const unsigned kind = below(4);
    const unsigned length_kind = below(100);
    const size_t want = length_kind < 20   ? 0
                        : length_kind < 90 ? below(60)
                        : length_kind < 99 ? below(2000)
                                           : below(TEXT_MAX);
    size_t len = 0;
    while (len < want) {
        if (kind == 0) {
            bytes[len++] = (char)below(256);
        } else if (kind == 1) {
            bytes[len++] = (char)(below(200) == 0 ? below(256) : ' ' + below(95));
        } else {
            const char *piece = pieces[below(sizeof(pieces) / sizeof(pieces[0]))];
            const size_t piece_len = strlen(piece);
            if (len + piece_len > want)
                break;
            memcpy(bytes + len, piece, piece_len);
            len += piece_len;
        }
    }
    return span_of(bytes, len);
}

/* Copies the text to memory of exactly its length, so that a sanitizer detects a read past its
 * end. */
static struct span exact_copy(struct span text)
{
    char *copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(copy);
    memcpy(copy, text.at, text.len);
    return span_of(copy, text.len);
}

/* `format`: NULL for the lines that log/access.c writes. */
static void check_one(const char *format, bool (*is_line)(struct span in), enum log_sink_kind kind)
{
    static char bytes[TEXT_MAX];
    static struct log_layout layout;
    struct log_access_sink sink;
    struct log_access log;
    char why[LOG_LAYOUT_WHY_MAX];
    if (format != NULL) {
        const struct log_layout_request request = { .format = span_text(format) };
        assert_true(log_layout_make(&layout, &request, why));
    }
    assert_int_equal(log_access_open(&sink, "/dev/null", format != NULL ? &layout : NULL, NULL), 0);
    sink.kind = kind; /* space for the longest line */
    const size_t line_max = kind == LOG_SINK_FILE ? LOG_LINE_MAX : PIPE_BUF;
    assert_int_equal(log_access_start(&log, &sink), 0);
    for (unsigned i = 0; i < LINES; i++) {
        const struct log_access_line line = {
            .peer = exact_copy(random_text(bytes)),
            .request_line = exact_copy(random_text(bytes)),
            .host = exact_copy(random_text(bytes)),
            .referer = exact_copy(random_text(bytes)),
            .user_agent = exact_copy(random_text(bytes)),
            .status = below(1000),
            .body_bytes = below(3) == 0 ? 0 : next_random(),
            .id = next_random(),
        };
        log.len = 0; /* reads one line at a time */
        log_access_add(&log, &line, (int64_t)below(2000000000));
        assert_true(log.len > 0 && log.len <= line_max);
        assert_int_equal(log.bytes[log.len - 1], '\n');
        const struct span told = span_of(log.bytes, log.len - 1);
        if (!is_line(told))
            fail_msg("line %u: %.*s", i, (int)told.len, told.at);
        free((void *)line.peer.at);
        free((void *)line.request_line.at);
        free((void *)line.host.at);
        free((void *)line.referer.at);
        free((void *)line.user_agent.at);
    }
    assert_int_equal(sink.dropped, 0);
    log_access_stop(&log);
    log_access_close(&sink);
}

static void any_bytes_make_one_json_line(void **state)
{
    (void)state;
    check_one("json", is_json_line, LOG_SINK_FILE);
    check_one("json", is_json_line, LOG_SINK_PIPE);
}

static void any_bytes_make_one_combined_line(void **state)
{
    (void)state;
    check_one(NULL, is_combined_line, LOG_SINK_FILE);
    check_one(NULL, is_combined_line, LOG_SINK_PIPE);
}

/* The same format, as an operator writes it. */
static void any_bytes_make_one_line_of_a_format(void **state)
{
    (void)state;
    static const char nginx[] = "$remote_addr - - [$time_local] \"$request\" $status "
                                "$body_bytes_sent \"$http_referer\" \"$http_user_agent\" "
                                "$request_id";
    static const char apache[] = "\"%h %l - %t \\\"%r\\\" %>s %b \\\"%{Referer}i\\\" "
                                 "\\\"%{User-Agent}i\\\" %L\"";
    check_one(nginx, is_combined_line, LOG_SINK_FILE);
    check_one(nginx, is_combined_line, LOG_SINK_PIPE);
    check_one(apache, is_combined_line, LOG_SINK_FILE);
}

int main(void)
{
    const char *seed = getenv("SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)random_state);
    random_state = random_state * UINT64_C(0x9e3779b97f4a7c15) | 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_make_one_json_line),
        cmocka_unit_test(any_bytes_make_one_combined_line),
        cmocka_unit_test(any_bytes_make_one_line_of_a_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
