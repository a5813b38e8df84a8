/* SPDX-License-Identifier: MIT
 *
 * Request heads at any split. The parser ends with the same result, status, lines and fields, and
 * never reads past its input, because unreadable memory follows. Heads are complete, invalid, long,
 * or random mutations of these. Each call has the bytes at another address. A second, simple reader
 * of one byte at a time must agree with the fast parser.
 */
#include "http/request.h"

#include "http/token.h"
#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROOM = 32 * 1024, EVERY_SPLIT_MAX = 700, MUTATIONS = 60 * 1000 };

static struct random_source random_bits;
static char *room_end; /* unreadable memory begins here */

#define FIELDS "Host: a\r\n\r\n"

static const struct span corpus[] = {
    SPAN("GET / HTTP/1.1\r\n" FIELDS),
    SPAN("GET /index.html?q=1 HTTP/1.1\r\nHost: www.example.com\r\nConnection: keep-alive\r\n"
         "sec-ch-ua: \"Browser\";v=\"124\"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
         "Accept: text/css,*/*;q=0.1\r\nReferer: http://www.example.com/\r\n"
         "Accept-Encoding: gzip, br\r\nAccept-Language: en\r\nRange: bytes=0-1\r\n"
         "If-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\nIf-Range: \"x\"\r\n\r\nGET /behind"),
    SPAN("\r\n\r\nHEAD http://a:80/x HTTP/1.0\r\nhost:a\r\nX: \t\xe9 \t\r\nEmpty:\r\n\r\n\0\n"),
    SPAN("OPTIONS * HTTP/1.9\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"
         "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
    SPAN("FOOBAR /\xc3\xa9 HTTP/1.1\r\n!#$%&'*+-.^_`|~: v\r\nIf-Match: *\r\n"
         "if-modified-since: x\r\nIF-UNMODIFIED-SINCE: y\r\n\r\n"),
    SPAN("\r\n\r\n\r\n\r\n\r\n"),
    SPAN("GET  / HTTP/1.1\r\n" FIELDS),
    SPAN("GET /a b HTTP/1.1\r\n" FIELDS),
    SPAN("GET /\r\n"),
    SPAN("GET / HTTP/2.0\r\n" FIELDS),
    SPAN("GET / HTTP/2.0x\r\n" FIELDS),
    SPAN("GET / HTTP/1.1\nHost: a\n\n"),
    SPAN("GET / HTTP/1.1\r\nHost : a\r\nX\r\n\r\n"),
    SPAN("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"),
    SPAN("GET / HTTP/1.1\r\nX: a\rb\0\r\n\r\n"),
    SPAN("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    SPAN("G/T / HTTP/9.9\r\n : \r\n\r\n"),
    SPAN("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLM / HTTP/1.1\r\n" FIELDS),
};
enum { CORPUS_COUNT = sizeof(corpus) / sizeof(corpus[0]) };

struct outcome {
    enum http_parse result;
    enum http_status status;
    struct http_request request;
};

static void step(struct outcome *o, struct span head, size_t len)
{
    char *at = room_end - len;

    memmove(at, head.at, len);
    o->result = http_request_parse(&o->request, span_of(at, len), &o->status);
}

/* Feeds growing beginnings of `head` until the parser has decided. `next` gives
 * the length to try after `len`, past the head's length when that is the last. */
static struct outcome parse_in_steps(struct span head, size_t (*next)(size_t len, size_t parameter),
                                     size_t parameter)
{
    struct outcome o = { .result = HTTP_PARSE_MORE };
    size_t len = 0;

    while (o.result == HTTP_PARSE_MORE && len < head.len) {
        len = next(len, parameter);
        step(&o, head, len < head.len ? len : head.len);
    }
    return o;
}

static size_t whole(size_t len, size_t unused)
{
    (void)len;
    (void)unused;
    return SIZE_MAX;
}

static size_t one_more(size_t len, size_t unused)
{
    (void)unused;
    return len + 1;
}

static size_t at_split(size_t len, size_t split)
{
    return len < split ? split : SIZE_MAX;
}

static size_t random_more(size_t len, size_t largest)
{
    return len + 1 + random_below(&random_bits, largest);
}

static void assert_same(const struct outcome *a, const struct outcome *b, struct span head)
{
    if (a->result == b->result && a->status == b->status &&
        memcmp(&a->request, &b->request, sizeof(a->request)) == 0)
        return;
    fail_msg("cut in pieces: result %d, status %d; whole: %d, %d; head `%.*s`", a->result,
             a->status, b->result, b->status, (int)head.len, head.at);
}

static void check_random_splits(struct span head)
{
    struct outcome at_once = parse_in_steps(head, whole, 0);

    for (size_t largest = 1; largest <= head.len; largest = largest * 4 + 3) {
        struct outcome o = parse_in_steps(head, random_more, largest);
        assert_same(&o, &at_once, head);
    }
}

static void check_every_split(struct span head)
{
    struct outcome at_once = parse_in_steps(head, whole, 0);
    struct outcome bytewise = parse_in_steps(head, one_more, 0);

    assert_same(&bytewise, &at_once, head);
    for (size_t split = 0; split <= head.len; split++) {
        struct outcome o = parse_in_steps(head, at_split, split);
        assert_same(&o, &at_once, head);
    }
    check_random_splits(head);
}

static void gives_one_result_for_known_heads_at_any_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < CORPUS_COUNT; i++) {
        assert_true(corpus[i].len <= EVERY_SPLIT_MAX);
        check_every_split(corpus[i]);
    }
}

static void gives_one_result_for_long_heads_at_any_split(void **state)
{
    (void)state;
    static char head[ROOM];
    static const struct {
        const char *before;
        char fill;
        const char *after;
    } rows[] = {
        { "GET /", 'a', " HTTP/1.1\r\n" FIELDS },     { "GET / HTTP/1.1\r\nX: ", 'v', "\r\n\r\n" },
        { "GET / HTTP/1.1\r\nX:", ' ', "y\r\n\r\n" }, { "GET / HTTP/1.1\r\n", 'n', ": y\r\n\r\n" },
        { "GET / HTTP/1.1\r\n", '!', ": y\r\n\r\n" },
    };
    static const size_t counts[] = { 250,   256,   257,   8191,  8192, 8193,
                                     24500, 24550, 24560, 24570, 30000 };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
            size_t before = strlen(rows[r].before);
            size_t after = strlen(rows[r].after);
            memcpy(head, rows[r].before, before);
            memset(head + before, rows[r].fill, counts[c]);
            memcpy(head + before + counts[c], rows[r].after, after);
            struct span bytes = span_of(head, before + counts[c] + after);
            struct outcome at_once = parse_in_steps(bytes, whole, 0);
            for (size_t largest = 100; largest < bytes.len; largest *= 5) {
                struct outcome o = parse_in_steps(bytes, random_more, largest);
                assert_same(&o, &at_once, bytes);
            }
        }
    }
}

/* Writes a mutation of a known head to `out`, and returns its length. */
static size_t mutate(char *out)
{
    static const char likely[] = "\r\n\r\n: \t/?.HTP10G\0\x7f\x80\xff\"(,";
    struct span head = corpus[random_below(&random_bits, CORPUS_COUNT)];
    size_t len = head.len;

    memcpy(out, head.at, len);
    for (size_t edits = 1 + random_below(&random_bits, 3); edits > 0; edits--) {
        size_t at = random_below(&random_bits, len);
        char byte = random_one_in(&random_bits, 3)
                        ? (char)random_u64(&random_bits)
                        : likely[random_below(&random_bits, sizeof(likely) - 1)];
        switch (random_below(&random_bits, 3)) {
        case 0:
            out[at] = byte;
            break;
        case 1:
            memmove(out + at + 1, out + at, len - at);
            out[at] = byte;
            len++;
            break;
        default:
            if (len > 1)
                memmove(out + at, out + at + 1, --len - at);
            break;
        }
    }
    return len;
}

static void gives_one_result_for_mutated_heads_at_any_split(void **state)
{
    (void)state;
    char head[EVERY_SPLIT_MAX + 8];

    for (unsigned i = 0; i < MUTATIONS; i++)
        check_random_splits(span_of(head, mutate(head)));
    for (unsigned i = 0; i < MUTATIONS / 200; i++)
        check_every_split(span_of(head, mutate(head)));
}

/* The simple reader: its state, and what it expects of the next byte. */
enum place { EMPTY_LINES, EMPTY_LF, METHOD, TARGET, VERSION, LINE, LAST_LF, NAME, VALUE, VALUE_LF };

struct reader {
    enum place place;
    size_t count; /* bytes of the current item */
    size_t empty_lines, fields;
    char major;
};

/* Reads the first byte of a line. Returns 0 or a status. */
static int begin_line(struct reader *r, char c)
{
    bool before = r->place == EMPTY_LINES;

    r->count = 0;
    if (c == '\r') {
        r->place = before ? EMPTY_LF : LAST_LF;
        return before && r->empty_lines++ == HTTP_LEADING_EMPTY_LINES_MAX ? 400 : 0;
    }
    r->place = before ? METHOD : NAME;
    return !before && r->fields++ == HTTP_FIELDS_MAX ? 431 : 0;
}

/* Reads one byte. Returns 0 to continue, 1 at the end of the head, or a status. */
static int read_byte(struct reader *r, char c)
{
    static const char version[] = "HTTP/d.d\r\n";
    bool control = (unsigned char)c < 0x20 || c == 0x7f;

    if (r->place == EMPTY_LINES || r->place == LINE) {
        int status = begin_line(r, c);
        if (status != 0 || c == '\r')
            return status;
    }
    enum place was = r->place;
    size_t count = r->count++;
    switch (was) {
    case METHOD:
        if (c == ' ' && count > 0)
            break;
        if (!http_token_byte(c))
            return 400;
        return count == HTTP_METHOD_MAX ? 501 : 0;
    case TARGET:
        if (c == ' ' && count > 0)
            break;
        if (control || c == ' ')
            return 400;
        return count == HTTP_TARGET_MAX ? 414 : 0;
    case VERSION:
        if (version[count] == 'd' ? c < '0' || c > '9' : c != version[count])
            return 400;
        if (count == 5)
            r->major = c;
        if (c != '\n')
            return 0;
        if (r->major != '1')
            return 505;
        break;
    case NAME:
        if (c == ':' && count > 0)
            break;
        if (!http_token_byte(c))
            return 400;
        return count == HTTP_FIELD_NAME_MAX ? 431 : 0;
    case VALUE:
        if (c == '\r')
            break;
        return control && c != '\t' ? 400 : 0;
    case EMPTY_LF:
    case VALUE_LF:
    case LAST_LF:
        if (c != '\n')
            return 400;
        if (was == LAST_LF)
            return 1;
        break;
    case EMPTY_LINES:
    case LINE:
        break;
    }
    static const enum place next[] = {
        [EMPTY_LF] = EMPTY_LINES, [METHOD] = TARGET,  [TARGET] = VERSION, [VERSION] = LINE,
        [NAME] = VALUE,           [VALUE] = VALUE_LF, [VALUE_LF] = LINE
    };
    r->place = next[was];
    r->count = 0;
    return 0;
}

static void agrees_with_a_simple_reader_of_one_byte_at_a_time(void **state)
{
    (void)state;
    char head[EVERY_SPLIT_MAX + 8];

    for (unsigned i = 0; i < MUTATIONS; i++) {
        size_t len = i < CORPUS_COUNT ? corpus[i].len : mutate(head);
        if (i < CORPUS_COUNT)
            memcpy(head, corpus[i].at, len);
        struct reader reader = { .place = EMPTY_LINES };
        int want = 0;
        size_t used = 0;
        while (want == 0 && used < len)
            want = read_byte(&reader, head[used++]);

        struct outcome o = parse_in_steps(span_of(head, len), whole, 0);
        int got = o.result == HTTP_PARSE_FAILED ? (int)o.status : o.result == HTTP_PARSED;
        if (got != want || (want == 1 && o.request.head_len != used))
            fail_msg("expected %d after %zu bytes, got %d; head `%.*s`", want, used, got, (int)len,
                     head);
    }
}

static int start(void **state)
{
    static struct guard guard;

    (void)state;
    random_bits = random_start();
    room_end = guard_room(&guard, ROOM) + ROOM;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_one_result_for_known_heads_at_any_split),
        cmocka_unit_test(gives_one_result_for_long_heads_at_any_split),
        cmocka_unit_test(gives_one_result_for_mutated_heads_at_any_split),
        cmocka_unit_test(agrees_with_a_simple_reader_of_one_byte_at_a_time),
    };
    return cmocka_run_group_tests_name("request", tests, start, NULL);
}
