/* SPDX-License-Identifier: MIT
 *
 * Chunked bodies at any split. The reader ends with the same result, at the same byte and with
 * the same count. Bodies are made of random chunks, extensions and trailers, so their true
 * length is known. Then they are damaged at random.
 */
#include "http/body.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { BODY_ROOM = 4096, BODIES = 20 * 1000 };

static struct random_source random_bits;
static char *room_end; /* unreadable memory begins here */

struct outcome {
    enum http_body_step step;
    enum http_status status;
    size_t consumed; /* when it has ended */
    uint64_t total;
};

static struct http_body begin_chunked(void)
{
    static const char head[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct http_request request = { 0 };
    struct http_body body;
    enum http_status status;

    assert_int_equal(http_request_parse(&request, span_text(head), &status), HTTP_PARSED);
    assert_int_equal(http_body_begin(&body, &request, head), 0);
    return body;
}

/* Discards `bytes` in pieces of at most `largest` bytes; 0: in one piece. */
static struct outcome discard(struct span bytes, size_t largest)
{
    struct http_body body = begin_chunked();
    struct outcome o = { .step = HTTP_BODY_MORE };

    for (size_t pos = 0; pos < bytes.len && o.step == HTTP_BODY_MORE;) {
        size_t len = largest > 0 ? 1 + random_below(&random_bits, largest) : bytes.len;
        len = len < bytes.len - pos ? len : bytes.len - pos;
        memcpy(room_end - len, bytes.at + pos, len);
        size_t consumed = SIZE_MAX;
        o.step = http_body_discard(&body, span_of(room_end - len, len), &consumed, &o.status);
        if (o.step == HTTP_BODY_MORE)
            assert_int_equal(consumed, len);
        if (o.step == HTTP_BODY_DONE)
            o.consumed = pos + consumed;
        pos += len;
    }
    o.total = body.total;
    return o;
}

static void check_splits(struct span bytes, struct outcome at_once)
{
    static const size_t sizes[] = { 1, 3, 20, 500 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct outcome o = discard(bytes, sizes[i]);
        if (o.step != at_once.step || o.status != at_once.status ||
            o.consumed != at_once.consumed || o.total != at_once.total)
            fail_msg("cut: step %d, status %d, %zu; whole: %d, %d, %zu; body `%.*s`", o.step,
                     o.status, o.consumed, at_once.step, at_once.status, at_once.consumed,
                     (int)bytes.len, bytes.at);
    }
}

static const char *pick(const char *const *texts, size_t count)
{
    return texts[random_below(&random_bits, count)];
}

/* Writes a well-formed body with further bytes behind it, and returns its properties. */
static struct outcome make_body(char *out, size_t *ret_len)
{
    static const char *const extensions[] = { "", "", "", ";x", ";x=1;y=\"a;\\\"b\"", " ; z = 1" };
    static const char *const trailers[] = { "", "", "X: y\r\n", "A:\r\nB: \"\xff\t\r\n" };
    static const char *const behind[] = { "", "GET / HTTP/1.1\r\n", "\r\n", "0\r\n\r\n" };
    struct outcome o = { .step = HTTP_BODY_DONE };
    char *at = out;

    for (size_t chunks = random_below(&random_bits, 4); chunks > 0; chunks--) {
        size_t size = 1 + random_below(&random_bits, 300);
        at += sprintf(at, random_one_in(&random_bits, 2) ? "%zx" : "%04zX", size);
        at += sprintf(at, "%s\r\n", pick(extensions, 6));
        for (size_t i = 0; i < size; i++)
            *at++ = "\r\n0;x\xff"[random_below(&random_bits, 7)];
        at += sprintf(at, "\r\n");
        o.total += size;
    }
    at += sprintf(at, "0%s\r\n%s\r\n", pick(extensions, 6), pick(trailers, 4));
    o.consumed = (size_t)(at - out);
    at += sprintf(at, "%s", pick(behind, 4));
    *ret_len = (size_t)(at - out);
    return o;
}

static void reads_random_bodies_to_their_end_at_any_split(void **state)
{
    (void)state;
    char body[BODY_ROOM];
    size_t len;

    for (unsigned i = 0; i < BODIES; i++) {
        struct outcome want = make_body(body, &len);
        struct outcome got = discard(span_of(body, len), 0);
        if (got.step != want.step || got.consumed != want.consumed || got.total != want.total)
            fail_msg("expected %zu bytes, got step %d, %zu; body `%.*s`", want.consumed, got.step,
                     got.consumed, (int)len, body);
        check_splits(span_of(body, len), got);
    }
}

static void gives_one_result_for_damaged_bodies_at_any_split(void **state)
{
    (void)state;
    static const char likely[] = "\r\n\r\n0123fF; =\"\\\0x:";
    char body[BODY_ROOM];
    size_t len;
    unsigned failed = 0;

    for (unsigned i = 0; i < BODIES; i++) {
        (void)make_body(body, &len);
        for (size_t edits = 1 + random_below(&random_bits, 3); edits > 0; edits--)
            body[random_below(&random_bits, len)] =
                likely[random_below(&random_bits, sizeof(likely) - 1)];
        len -= random_below(&random_bits, len);
        struct outcome got = discard(span_of(body, len), 0);
        check_splits(span_of(body, len), got);
        failed += got.step == HTTP_BODY_FAILED;
    }
    assert_in_range(failed, BODIES / 20, BODIES); /* enough of the damage is detected */
}

static int start(void **state)
{
    static struct guard guard;

    (void)state;
    random_bits = random_start();
    room_end = guard_room(&guard, BODY_ROOM) + BODY_ROOM;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_random_bodies_to_their_end_at_any_split),
        cmocka_unit_test(gives_one_result_for_damaged_bodies_at_any_split),
    };
    return cmocka_run_group_tests_name("body", tests, start, NULL);
}
