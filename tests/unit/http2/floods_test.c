/* SPDX-License-Identifier: MIT
 *
 * Every flood that a client can send ends at a bound of http2/limits.h, and a client that only does
 * much of something useful does not.
 */
#include "unit/http2/wire.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char zeros[16384];

/* Sends the frame until the connection fails, or `most` times. Returns how often it was sent. */
static unsigned flood(struct wire *w, struct wire_frame frame, unsigned most)
{
    unsigned count = 0;
    for (; count < most; count++) {
        if (wire_send(w, frame.type, frame.flags, frame.stream, frame.payload) == HTTP2_FAILED)
            return count + 1;
        wire_forget(w);
    }
    return count;
}

static const struct {
    const char *name;
    struct wire_frame frame;
    enum http2_fault fault;
    unsigned most;
} useless[] = {
    { "PING", { HTTP2_FRAME_PING, 0, 0, SPAN("12345678") }, HTTP2_FAULT_CONTROL, 1000 },
    { "PING with ACK", { HTTP2_FRAME_PING, 1, 0, SPAN("12345678") }, HTTP2_FAULT_CONTROL, 1000 },
    { "SETTINGS", { HTTP2_FRAME_SETTINGS, 0, 0, SPAN("") }, HTTP2_FAULT_CONTROL, 1000 },
    { "PRIORITY", { HTTP2_FRAME_PRIORITY, 0, 9, SPAN("\0\0\0\0\0") }, HTTP2_FAULT_CONTROL, 1000 },
    { "PRIORITY_UPDATE",
      { HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\1u=1") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "WINDOW_UPDATE",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\0\0\1") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "WINDOW_UPDATE of a stream",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 1, SPAN("\0\0\0\1") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "WINDOW_UPDATE of a closed stream",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 3, SPAN("\0\0\0\1") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "GOAWAY", { HTTP2_FRAME_GOAWAY, 0, 0, SPAN("\0\0\0\0\0\0\0\0") }, HTTP2_FAULT_CONTROL, 1000 },
    { "an unknown type", { 0x77, 0, 0, SPAN("") }, HTTP2_FAULT_CONTROL, 1000 },
    { "an unknown type with payload", { 0x77, 0, 5, SPAN("payload") }, HTTP2_FAULT_CONTROL, 1000 },
    { "empty DATA", { HTTP2_FRAME_DATA, 0, 1, SPAN("") }, HTTP2_FAULT_CONTROL, 1000 },
    { "DATA of padding",
      { HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED, 1, SPAN("\3\0\0\0") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "DATA of one byte", { HTTP2_FRAME_DATA, 0, 1, SPAN("x") }, HTTP2_FAULT_CONTROL, 1000 },
    { "DATA on a stream that the server has reset",
      { HTTP2_FRAME_DATA, 0, 5, SPAN("x") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "HEADERS on such a stream",
      { HTTP2_FRAME_HEADERS, 5, 5, SPAN("\x82") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "RST_STREAM of such a stream",
      { HTTP2_FRAME_RST_STREAM, 0, 5, SPAN("\0\0\0\10") },
      HTTP2_FAULT_CONTROL,
      1000 },
    { "RST_STREAM of an ended stream",
      { HTTP2_FRAME_RST_STREAM, 0, 3, SPAN("\0\0\0\10") },
      HTTP2_FAULT_RESETS,
      100 },
};

static void frames_without_progress_are_bounded(void **state)
{
    (void)state;
    static struct wire w;
    for (size_t i = 0; i < COUNT(useless); i++) {
        wire_open(&w);
        wire_request(&w, 1, false);
        wire_request(&w, 3, true);
        http2_connection_end(&w.c, &w.out, wire_stream(&w, 3));
        wire_request(&w, 5, false);
        http2_connection_reset(&w.c, &w.out, wire_stream(&w, 5), HTTP2_FAULT_MALFORMED);
        wire_forget(&w);
        unsigned sent = flood(&w, useless[i].frame, useless[i].most + 10);
        if (sent > useless[i].most + 1 || sent < useless[i].most - 10)
            fail_msg("%s: %u frames were read", useless[i].name, sent);
        wire_assert_failed(&w, useless[i].fault, HTTP2_ENHANCE_YOUR_CALM);
    }
}

/* Sends requests, each followed by one frame on its stream, until the connection fails. With
 * `answers`, the server has answered completely before. Returns how many. */
static unsigned flood_streams(struct wire *w, struct wire_frame frame, bool end, bool answers)
{
    uint32_t id = 1;
    for (; id < 20001; id += 2) {
        if (wire_request(w, id, end) == HTTP2_FAILED)
            break;
        if (answers)
            http2_connection_end(&w->c, &w->out, wire_stream(w, id));
        if (wire_send(w, frame.type, frame.flags, id, frame.payload) == HTTP2_FAILED)
            break;
        wire_forget(w);
    }
    return (id + 1) / 2;
}

/* CVE-2023-44487. Each stream is reset as soon as it is open, before or after its answer. */
static void rapid_reset_ends_at_the_budget(void **state)
{
    (void)state;
    static const struct wire_frame reset = { HTTP2_FRAME_RST_STREAM, 0, 0, SPAN("\0\0\0\10") };
    static struct wire w;
    wire_open(&w);
    assert_int_equal(flood_streams(&w, reset, true, false), HTTP2_RESETS_MAX + 1);
    wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);

    wire_open(&w);
    assert_int_equal(flood_streams(&w, reset, true, true), HTTP2_RESETS_MAX);
    wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);
}

/* Bytes that were sent once pay for one reset. */
static void a_download_pays_for_one_reset(void **state)
{
    (void)state;
    static const struct wire_frame reset = { HTTP2_FRAME_RST_STREAM, 0, 0, SPAN("\0\0\0\10") };
    static struct wire w;
    wire_open(&w);
    w.c.sent = HTTP2_RESET_BYTES;
    assert_int_equal(flood_streams(&w, reset, true, false), HTTP2_RESETS_MAX + 2);
    wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);
}

/* CVE-2025-8671. The client makes the server reset each stream, in every way that there is. */
static void resets_that_the_client_provokes_end_at_the_same_budget(void **state)
{
    (void)state;
    static const struct wire_frame rows[] = {
        { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\0\0\0") },
        { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\x7f\xff\xff\xff") },
        { HTTP2_FRAME_DATA, 0, 0, SPAN("after the end") },
        { HTTP2_FRAME_HEADERS, 5, 0, SPAN("\x82") },
        { HTTP2_FRAME_PRIORITY, 0, 0, SPAN("\0\0\0\1") },
    };
    static struct wire w;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_open(&w);
        assert_int_equal(flood_streams(&w, rows[i], true, false), HTTP2_RESETS_MAX + 1);
        wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);
    }
    wire_open(&w); /* trailers that do not end their stream */
    static const struct wire_frame trailers = { HTTP2_FRAME_HEADERS, 4, 0, SPAN("\x82") };
    assert_int_equal(flood_streams(&w, trailers, false, false), HTTP2_RESETS_MAX + 1);
}

/* Requests that the caller finds malformed are resets by the server, too. */
static void malformed_requests_end_at_the_same_budget(void **state)
{
    (void)state;
    static struct wire w;
    uint32_t id = 1;
    wire_open(&w);
    for (; wire_request(&w, id, true) != HTTP2_FAILED; id += 2) {
        http2_connection_reset(&w.c, &w.out, wire_stream(&w, id), HTTP2_FAULT_MALFORMED);
        wire_forget(&w);
    }
    assert_int_equal((id + 1) / 2, HTTP2_RESETS_MAX + 2);
    wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);
}

/* Streams that are opened and left open, and more behind them. */
static void streams_above_the_limit_end_at_the_same_budget(void **state)
{
    (void)state;
    static struct wire w;
    uint32_t id = 1;
    wire_open(&w);
    for (; wire_request(&w, id, false) != HTTP2_FAILED; id += 2)
        wire_forget(&w);
    assert_int_equal((id + 1) / 2, HTTP2_STREAMS_MAX + HTTP2_RESETS_MAX + 1);
    wire_assert_failed(&w, HTTP2_FAULT_RESETS, HTTP2_ENHANCE_YOUR_CALM);
}

/* CVE-2024-27316. */
static void continuation_frames_are_bounded(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_HEADERS, 0, 1, SPAN("\x82"));
    for (unsigned i = 1; i < HTTP2_CONTINUATIONS_MAX; i++)
        wire_send(&w, HTTP2_FRAME_CONTINUATION, 0, 1, SPAN(""));
    wire_send(&w, HTTP2_FRAME_CONTINUATION, HTTP2_FRAME_END_HEADERS, 1, SPAN("\x84"));
    assert_int_equal(w.event[0].kind, HTTP2_REQUEST);
    wire_send(&w, HTTP2_FRAME_HEADERS, 0, 3, SPAN("\x82"));
    static const struct wire_frame frame = { HTTP2_FRAME_CONTINUATION, 0, 3, SPAN("") };
    assert_int_equal(flood(&w, frame, 100), HTTP2_CONTINUATIONS_MAX + 1);
    wire_assert_failed(&w, HTTP2_FAULT_CONTINUATIONS, HTTP2_ENHANCE_YOUR_CALM);
}

static void settings_of_one_frame_are_bounded(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_SETTINGS, 0, 0, span_of(zeros, HTTP2_SETTINGS_MAX * 6));
    assert_int_equal(w.count, 0);
    wire_send(&w, HTTP2_FRAME_SETTINGS, 0, 0, span_of(zeros, HTTP2_SETTINGS_MAX * 6 + 6));
    wire_assert_failed(&w, HTTP2_FAULT_SETTINGS_COUNT, HTTP2_ENHANCE_YOUR_CALM);
}

/* Each change moves the windows of all open streams, which costs time for each of them. */
static void changes_of_all_windows_are_bounded(void **state)
{
    (void)state;
    static struct wire w;
    unsigned count = 0;
    wire_open(&w);
    for (uint32_t id = 1; id < 2 * HTTP2_STREAMS_MAX; id += 2) {
        wire_request(&w, id, true);
        http2_connection_want(&w.c, wire_stream(&w, id));
    }
    while (wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, count % 2) != HTTP2_FAILED)
        count++;
    assert_in_range(count, 8, HTTP2_CONTROL_MAX / HTTP2_STREAMS_MAX);
    wire_assert_failed(&w, HTTP2_FAULT_CONTROL, HTTP2_ENHANCE_YOUR_CALM);
}

/* The client opens its window one byte at a time, so that the server sends frames of one byte. */
static void windows_of_one_byte_are_bounded(void **state)
{
    (void)state;
    static struct wire w;
    unsigned sent = 0;
    wire_open(&w);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 1);
    wire_request(&w, 1, true);
    http2_connection_want(&w.c, wire_stream(&w, 1));
    for (;; sent++) {
        struct http2_stream *stream = http2_connection_next(&w.c);
        assert_non_null(stream);
        http2_connection_spend(&w.c, stream, 1);
        if (wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1) == HTTP2_FAILED)
            break;
    }
    assert_in_range(sent, HTTP2_CONTROL_MAX / 2 - 10, HTTP2_CONTROL_MAX / 2);
    wire_assert_failed(&w, HTTP2_FAULT_CONTROL, HTTP2_ENHANCE_YOUR_CALM);
}

/* A client that updates two windows after each DATA frame, as small ones do, for a long file. */
static void a_long_answer_with_many_updates_is_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    http2_connection_want(&w.c, wire_stream(&w, 1));
    for (unsigned i = 0; i < 100000; i++) {
        http2_connection_spend(&w.c, http2_connection_next(&w.c), 16384);
        assert_int_equal(wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 16384), HTTP2_MORE);
        assert_int_equal(wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 16384), HTTP2_MORE);
        wire_forget(&w);
    }
}

/* Go's client returns each 4 KiB that it reads, to both windows. After a pause it reads much at a
 * time, and the server sends no DATA between the frames. */
static void many_updates_in_small_steps_are_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 1 << 30);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 1 << 30);
    wire_request(&w, 1, true);
    http2_connection_want(&w.c, wire_stream(&w, 1));
    for (unsigned i = 0; i < 4000; i++)
        http2_connection_spend(&w.c, http2_connection_next(&w.c), 16384);
    for (unsigned i = 0; i < 4 * 4000; i++) {
        assert_int_equal(wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 4096), HTTP2_MORE);
        assert_int_equal(wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 4096), HTTP2_MORE);
        wire_forget(&w);
    }
    const struct wire_frame more = { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\0\x10\0") };
    assert_in_range(flood(&w, more, 5000), 900, 1001);
}

/* A client that sends PRIORITY, PING and two updates with each request. */
static void many_requests_with_control_frames_are_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    for (uint32_t id = 1; id < 100001; id += 2) {
        wire_send(&w, HTTP2_FRAME_PRIORITY, 0, id, SPAN("\0\0\0\0\0"));
        wire_request(&w, id, true);
        http2_connection_spend(&w.c, wire_stream(&w, id), 100);
        http2_connection_end(&w.c, &w.out, wire_stream(&w, id));
        wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 100);
        wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, id, 100);
        wire_send(&w, HTTP2_FRAME_PING, 0, 0, SPAN("12345678"));
        wire_forget(&w);
        assert_false(w.c.fault);
    }
}

/* A browser cancels all its streams when the reader leaves a page, again and again. */
static void a_client_that_cancels_pages_is_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    uint32_t id = 1;
    wire_open(&w);
    for (unsigned page = 0; page < 50; page++) {
        for (unsigned i = 0; i < 100; i++, id += 2) {
            wire_request(&w, id, true);
            http2_connection_end(&w.c, &w.out, wire_stream(&w, id));
        }
        for (unsigned i = 0; i < 100; i++)
            wire_request(&w, id + 2 * i, true);
        for (unsigned i = 0; i < 100; i++, id += 2)
            wire_send_u32(&w, HTTP2_FRAME_RST_STREAM, id, HTTP2_CANCEL);
        wire_forget(&w);
        assert_false(w.c.fault);
    }
}

/* A player of videos resets its stream at each seek, and no answer is ever complete. */
static void a_client_that_seeks_is_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 0x70000000);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 10000000);
    for (uint32_t id = 1; id < 2001; id += 2) {
        wire_request(&w, id, true);
        for (unsigned i = 0; i < 16; i++)
            http2_connection_spend(&w.c, wire_stream(&w, id), 16384);
        assert_int_equal(wire_send_u32(&w, HTTP2_FRAME_RST_STREAM, id, 8), HTTP2_MORE);
        wire_forget(&w);
    }
    assert_int_equal(w.c.resets, HTTP2_RESETS_MAX);
}

/* An upload in frames of 1 KiB, padded, within its window. */
static void a_long_upload_is_no_flood(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    for (unsigned i = 0; i < 20000; i++) {
        assert_int_equal(wire_send(&w, HTTP2_FRAME_DATA, 0, 1, span_of(zeros, 1024)), HTTP2_MORE);
        wire_forget(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_without_progress_are_bounded),
        cmocka_unit_test(rapid_reset_ends_at_the_budget),
        cmocka_unit_test(a_download_pays_for_one_reset),
        cmocka_unit_test(resets_that_the_client_provokes_end_at_the_same_budget),
        cmocka_unit_test(malformed_requests_end_at_the_same_budget),
        cmocka_unit_test(streams_above_the_limit_end_at_the_same_budget),
        cmocka_unit_test(continuation_frames_are_bounded),
        cmocka_unit_test(settings_of_one_frame_are_bounded),
        cmocka_unit_test(changes_of_all_windows_are_bounded),
        cmocka_unit_test(windows_of_one_byte_are_bounded),
        cmocka_unit_test(a_long_answer_with_many_updates_is_no_flood),
        cmocka_unit_test(many_updates_in_small_steps_are_no_flood),
        cmocka_unit_test(many_requests_with_control_frames_are_no_flood),
        cmocka_unit_test(a_client_that_cancels_pages_is_no_flood),
        cmocka_unit_test(a_client_that_seeks_is_no_flood),
        cmocka_unit_test(a_long_upload_is_no_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
