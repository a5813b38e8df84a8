/* SPDX-License-Identifier: MIT
 *
 * Streams of responses at any split. A client reads the same heads, statuses and bodies. Streams
 * are made at random, so the truth is known, and then damaged at random.
 */
#include "http/response.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROOM = 8192, STREAMS = 20 * 1000 };

static struct random_source random_bits;
static char *room_end;

/* The result of reading a stream. */
struct outcome {
    unsigned answers, fault; /* fault: 0 none, 1 form, 2 framing, 3 body */
    uint64_t statuses;       /* a hash of them in order */
    uint64_t body_bytes;
};

struct reader {
    struct outcome seen;
    struct http_response response;
    bool in_body;
};

static bool reading(const struct reader *reader)
{
    return reader->seen.fault == 0;
}

static void end_answer(struct reader *reader)
{
    reader->seen.answers++;
    reader->seen.statuses = reader->seen.statuses * 1000003 + reader->response.status;
    reader->response = (struct http_response){ 0 };
    reader->in_body = false;
}

/* Reads from `bytes`, which begin a head or continue a body. Returns how many are consumed. */
static size_t step(struct reader *reader, struct span bytes)
{
    if (!reader->in_body) {
        enum http_parse result = http_response_parse(&reader->response, bytes, false);
        if (result == HTTP_PARSE_FAILED)
            reader->seen.fault = 1u + reader->response.fault;
        if (result != HTTP_PARSED)
            return 0;
        reader->in_body = reader->response.body.kind != HTTP_BODY_NONE;
        size_t len = reader->response.head_len;
        if (!reader->in_body)
            end_answer(reader);
        return len;
    }
    size_t consumed = 0;
    struct span data = { "", 0 };
    enum http_status status;
    enum http_body_step done =
        http_body_read(&reader->response.body, bytes, &consumed, &data, &status);
    if (done == HTTP_BODY_FAILED) {
        reader->seen.fault = 3;
        return 0;
    }
    reader->seen.body_bytes += data.len;
    if (done == HTTP_BODY_DONE)
        end_answer(reader);
    return consumed;
}

/* Reads a stream in pieces of at most `largest` bytes; 0: in one. */
static struct outcome read_stream(struct span stream, size_t largest)
{
    struct reader reader = { 0 };
    size_t from = 0, to = 0;
    while (to < stream.len && reading(&reader)) {
        size_t more = largest > 0 ? 1 + random_below(&random_bits, largest) : stream.len;
        to += more < stream.len - to ? more : stream.len - to;
        for (size_t used = 1; used > 0 && from < to && reading(&reader); from += used) {
            size_t len = to - from;
            memcpy(room_end - len, stream.at + from, len);
            used = step(&reader, span_of(room_end - len, len));
        }
    }
    return reader.seen;
}

static bool same(struct outcome a, struct outcome b)
{
    return a.answers == b.answers && a.fault == b.fault && a.statuses == b.statuses &&
           a.body_bytes == b.body_bytes;
}

static void check_splits(struct span stream, struct outcome whole)
{
    static const size_t sizes[] = { 1, 3, 20, 500 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct outcome cut = read_stream(stream, sizes[i]);
        if (!same(cut, whole))
            fail_msg("cut: %u answers, fault %u, %llu bytes; whole: %u, %u, %llu; `%.*s`",
                     cut.answers, cut.fault, (unsigned long long)cut.body_bytes, whole.answers,
                     whole.fault, (unsigned long long)whole.body_bytes, (int)stream.len, stream.at);
    }
}

static char *put_body(char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *at++ = "\r\n0;x\xffHTTP/1.1"[random_below(&random_bits, 14)];
    return at;
}

static char *put_chunked(char *at, struct outcome *truth)
{
    at += sprintf(at, "transfer-encoding: chunked\r\n\r\n");
    for (size_t chunks = random_below(&random_bits, 3); chunks > 0; chunks--) {
        size_t size = 1 + random_below(&random_bits, 200);
        at += sprintf(at, random_one_in(&random_bits, 2) ? "%zx\r\n" : "%04zX;a=\"b\"\r\n", size);
        at = put_body(at, size);
        at += sprintf(at, "\r\n");
        truth->body_bytes += size;
    }
    return at + sprintf(at, random_one_in(&random_bits, 2) ? "0\r\n\r\n" : "0\r\nT: \"\r\n\r\n");
}

static struct outcome make_stream(char *out, size_t *ret_len)
{
    static const unsigned statuses[] = { 200, 204, 304, 404, 100, 503 };
    static const char *const fields[] = { "", "Server: x\r\nDate: y\r\n", "A:\r\nB: \xff\t\r\n" };
    struct outcome truth = { 0 };
    char *at = out;
    for (size_t count = 1 + random_below(&random_bits, 4); count > 0; count--) {
        unsigned status = statuses[random_below(&random_bits, 6)];
        at +=
            sprintf(at, "HTTP/1.1 %u Reason\r\n%s", status, fields[random_below(&random_bits, 3)]);
        bool bodiless = status == 204 || status == 304 || status == 100;
        if (!bodiless && random_one_in(&random_bits, 2)) {
            at = put_chunked(at, &truth);
        } else {
            size_t size = random_below(&random_bits, 300);
            at += sprintf(at, "Content-Length: %zu\r\n\r\n", size);
            at = bodiless ? at : put_body(at, size);
            truth.body_bytes += bodiless ? 0 : size;
        }
        truth.answers++;
        truth.statuses = truth.statuses * 1000003 + status;
    }
    *ret_len = (size_t)(at - out);
    return truth;
}

static void reads_streams_of_responses_at_any_split(void **state)
{
    (void)state;
    char stream[ROOM];
    size_t len;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct outcome truth = make_stream(stream, &len);
        struct outcome whole = read_stream(span_of(stream, len), 0);
        if (!same(whole, truth))
            fail_msg("expected %u answers, got %u, fault %u; `%.*s`", truth.answers, whole.answers,
                     whole.fault, (int)len, stream);
        check_splits(span_of(stream, len), whole);
    }
}

static void gives_one_result_for_damaged_streams_at_any_split(void **state)
{
    (void)state;
    static const char likely[] = "\r\n\r\n0123fF; =\"\\:HTP/.\x01";
    char stream[ROOM];
    size_t len;
    unsigned failed = 0;
    for (unsigned i = 0; i < STREAMS; i++) {
        (void)make_stream(stream, &len);
        for (size_t edits = 1 + random_below(&random_bits, 3); edits > 0; edits--)
            stream[random_below(&random_bits, len)] =
                likely[random_below(&random_bits, sizeof(likely) - 1)];
        len -= random_below(&random_bits, len);
        struct outcome whole = read_stream(span_of(stream, len), 0);
        check_splits(span_of(stream, len), whole);
        failed += whole.fault != 0;
    }
    assert_in_range(failed, STREAMS / 20, STREAMS);
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
        cmocka_unit_test(reads_streams_of_responses_at_any_split),
        cmocka_unit_test(gives_one_result_for_damaged_streams_at_any_split),
    };
    return cmocka_run_group_tests_name("response", tests, start, NULL);
}
