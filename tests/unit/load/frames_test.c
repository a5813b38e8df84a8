/* SPDX-License-Identifier: MIT
 *
 * The client's end of an HTTP/2 connection: the frames that it sends, its windows, and the heads
 * that it recognises. Whole servers are in tests/e2e/test_load_http2.py, and any split of the input
 * in fuzz/http2_response_fuzz.c.
 */
#include "load/frames.h"

#include "http2/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PLACES = 4, OUT = 256 * 1024 };

static const struct span blocks[LOAD_HTTP2_FORMS] = { { "plain", 5 },
                                                      { "first", 5 },
                                                      { "later", 5 } };

static struct load_http2 h;
static struct load_http2_stream streams[PLACES];
static struct load_frames_memory memory;
static struct load_frames_arrival arrival;
static char out_bytes[OUT];
static struct buf out;

static int begin(void **state)
{
    (void)state;
    memset(&memory, 0, sizeof(memory));
    memset(&h, 0, sizeof(h));
    out = buf_over(out_bytes, sizeof(out_bytes));
    load_http2_begin(&h, streams, PLACES, false, &out);
    out.len = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(h.table.memory);
    return 0;
}

/* Reads one event from bytes, all of which must be consumed unless the table must grow first. */
static enum load_frames_event read_all(struct span bytes)
{
    enum load_frames_event event = load_frames_read(&h, &memory, &bytes, &out, &arrival);
    assert_true(bytes.len == 0 || event == LOAD_FRAMES_GROW);
    return event;
}

/* Reads one frame. After LOAD_FRAMES_GROW, the next call has the same frame in the same place. */
static enum load_frames_event receive(unsigned type, unsigned flags, uint32_t stream,
                                      struct span payload)
{
    static char bytes[1024];
    struct buf frame = buf_over(bytes, sizeof(bytes));
    http2_frame_add(&frame, (struct http2_frame){ .length = (uint32_t)payload.len,
                                                  .stream = stream,
                                                  .type = (uint8_t)type,
                                                  .flags = (uint8_t)flags });
    buf_add(&frame, payload);
    return read_all(buf_span(&frame));
}

static enum load_frames_event receive_setting(enum http2_frame_setting setting, uint32_t value)
{
    char bytes[HTTP2_FRAME_SETTING_BYTES];
    struct buf payload = buf_over(bytes, sizeof(bytes));
    http2_frame_add_setting(&payload, setting, value);
    return receive(HTTP2_FRAME_SETTINGS, 0, 0, buf_span(&payload));
}

/* Reads the next frame of the client from the front of `from`. */
static struct http2_frame next_sent(struct span *from)
{
    assert_true(from->len >= HTTP2_FRAME_HEAD);
    struct http2_frame frame = http2_frame_read(from->at);
    assert_true(from->len >= HTTP2_FRAME_HEAD + frame.length);
    *from = span_skip(*from, HTTP2_FRAME_HEAD + frame.length);
    return frame;
}

static void open_stream(unsigned place, uint64_t body)
{
    assert_true(load_http2_open(&h, place, blocks, body, place, &out));
}

#define HEAD_5 \
    SPAN("\x88\x0f\x0d\x01" \
         "5") /* :status 200, content-length 5 */

/* ---- sending ---- */

static void one_stream_is_open_before_the_settings_arrive(void **state)
{
    (void)state;
    assert_true(load_http2_may_open(&h));
    open_stream(0, 0);
    assert_false(load_http2_may_open(&h));
    assert_int_equal(receive_setting(HTTP2_FRAME_MAX_CONCURRENT_STREAMS, 3), LOAD_FRAMES_SETTINGS);
    assert_true(arrival.first);
    for (unsigned place = 1; place < 3; place++) {
        assert_true(load_http2_may_open(&h));
        open_stream(place, 0);
    }
    assert_false(load_http2_may_open(&h));
    load_http2_forget(&h, 1);
    assert_true(load_http2_may_open(&h));
    open_stream(1, 0);
    assert_int_equal(streams[1].id, 7);
}

static void the_first_request_fills_the_table_and_later_ones_use_it(void **state)
{
    (void)state;
    open_stream(0, 0);
    assert_memory_equal(out.at + HTTP2_FRAME_HEAD, "first", 5);
    (void)receive_setting(HTTP2_FRAME_MAX_CONCURRENT_STREAMS, 100);
    out.len = 0;
    open_stream(1, 0);
    assert_memory_equal(out.at + HTTP2_FRAME_HEAD, "later", 5);
    struct http2_frame frame = http2_frame_read(out.at);
    assert_int_equal(frame.type, HTTP2_FRAME_HEADERS);
    assert_int_equal(frame.flags, HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM);
    assert_int_equal(frame.stream, 3);
}

static void a_smaller_table_makes_requests_plain_after_one_size_update(void **state)
{
    (void)state;
    open_stream(0, 0);
    (void)receive_setting(HTTP2_FRAME_HEADER_TABLE_SIZE, 4095);
    for (unsigned turn = 1; turn < 3; turn++) {
        out.len = 0;
        open_stream(turn, 0);
        struct span block = span_of(out.at + HTTP2_FRAME_HEAD, out.len - HTTP2_FRAME_HEAD);
        assert_true(span_equal(block, turn == 1 ? SPAN("\x20plain") : SPAN("plain")));
        assert_int_equal(http2_frame_read(out.at).length, block.len);
    }
}

static void a_request_needs_all_of_its_space(void **state)
{
    (void)state;
    struct buf small = buf_over(out_bytes, HTTP2_FRAME_HEAD + 4);
    assert_false(load_http2_open(&h, 0, blocks, 0, 0, &small));
    assert_int_equal(small.len, 0);
    assert_int_equal(h.open, 0);
    open_stream(0, 0);
    assert_int_equal(streams[0].id, 1);
}

/* Sends what may be sent of a body of `size`. Returns the bytes of DATA. */
static size_t send_body(unsigned place, size_t size, bool *ret_ended)
{
    static const char body[200000];
    size_t sent = 0;
    out.len = 0;
    load_http2_send_body(&h, place, span_of(body, size), &out);
    struct span frames = buf_span(&out);
    *ret_ended = false;
    while (frames.len > 0) {
        struct http2_frame frame = next_sent(&frames);
        assert_int_equal(frame.type, HTTP2_FRAME_DATA);
        assert_int_equal(frame.stream, streams[place].id);
        assert_true(frame.length > 0 && frame.length <= h.frame_max);
        assert_false(*ret_ended);
        *ret_ended = (frame.flags & HTTP2_FRAME_END_STREAM) != 0;
        sent += frame.length;
    }
    return sent;
}

static void bodies_keep_to_both_windows(void **state)
{
    (void)state;
    bool ended;
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    open_stream(0, 100000);
    assert_int_equal(send_body(0, 100000, &ended), 65535); /* of the connection */
    assert_false(ended);
    assert_int_equal(receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\1\0\0")), LOAD_FRAMES_MORE);
    assert_int_equal(send_body(0, 100000, &ended), 0); /* that of the stream is used up */
    (void)receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 1, SPAN("\0\0\x40\0"));
    assert_int_equal(send_body(0, 100000, &ended), 0x4000);
    (void)receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 1, SPAN("\0\1\0\0"));
    assert_int_equal(send_body(0, 100000, &ended), 100000 - 65535 - 0x4000);
    assert_true(ended);
    assert_int_equal(streams[0].unsent, 0);
}

static void a_window_below_zero_sends_nothing(void **state)
{
    (void)state;
    bool ended;
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    open_stream(0, 70000);
    assert_int_equal(send_body(0, 70000, &ended), 65535);
    (void)receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\1\0\0"));
    assert_int_equal(receive_setting(HTTP2_FRAME_INITIAL_WINDOW_SIZE, 65000), LOAD_FRAMES_SETTINGS);
    assert_int_equal(streams[0].window, -535);
    (void)receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 1, SPAN("\0\0\2\x17")); /* 535 */
    assert_int_equal(send_body(0, 70000, &ended), 0);
    (void)receive(HTTP2_FRAME_WINDOW_UPDATE, 0, 1, SPAN("\0\0\0\7"));
    assert_int_equal(send_body(0, 70000, &ended), 7);
    assert_int_equal(receive_setting(HTTP2_FRAME_INITIAL_WINDOW_SIZE, 70000), LOAD_FRAMES_SETTINGS);
    assert_int_equal(send_body(0, 70000, &ended), 70000 - 65535 - 7);
    assert_true(ended);
}

static void longer_frames_are_sent_when_the_server_accepts_them(void **state)
{
    (void)state;
    bool ended;
    (void)receive_setting(HTTP2_FRAME_MAX_FRAME_SIZE, 50000);
    open_stream(0, 50000);
    assert_int_equal(send_body(0, 50000, &ended), 50000);
    assert_int_equal(out.len, HTTP2_FRAME_HEAD + 50000);
    assert_int_equal(receive_setting(HTTP2_FRAME_MAX_FRAME_SIZE, 16383), LOAD_FRAMES_FAILED);
}

/* ---- receiving ---- */

static void received_bytes_are_refunded_when_they_are_half_of_the_window(void **state)
{
    (void)state;
    static char frame[HTTP2_FRAME_HEAD + 16384];
    size_t received = 0;
    open_stream(0, 0);
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    assert_int_equal(receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 1, SPAN("\x88")),
                     LOAD_FRAMES_ANSWER);
    out.len = 0;
    http2_frame_write(frame, (struct http2_frame){ .length = 16384, .stream = 1 });
    while (received < LOAD_HTTP2_WINDOW / 2) {
        assert_int_equal(out.len, 0);
        assert_int_equal(read_all(span_of(frame, sizeof(frame))), LOAD_FRAMES_DATA);
        received += 16384;
    }
    struct span frames = buf_span(&out);
    for (uint32_t stream = 0; stream <= 1; stream++) {
        const char *payload = frames.at + HTTP2_FRAME_HEAD;
        struct http2_frame sent = next_sent(&frames);
        assert_int_equal(sent.type, HTTP2_FRAME_WINDOW_UPDATE);
        assert_int_equal(sent.stream, stream);
        assert_int_equal(http2_frame_read_u32(payload), received);
    }
    assert_int_equal(frames.len, 0);
    assert_int_equal(streams[0].received, received);
}

/* Receives an answer at place 0, which the block belongs to, and frees the place. */
static void receive_answer(struct span block)
{
    open_stream(0, 0);
    uint32_t id = streams[0].id;
    enum load_frames_event event;
    while ((event = receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, id, block)) ==
           LOAD_FRAMES_GROW) {
        char *old = h.table.memory, *more = malloc(arrival.needed);
        assert_non_null(more);
        http2_table_move(&h.table, more, arrival.needed);
        free(old);
    }
    assert_int_equal(event, LOAD_FRAMES_ANSWER);
    assert_int_equal(receive(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, id, SPAN("hello")),
                     LOAD_FRAMES_DATA);
    assert_true(arrival.ended);
    assert_int_equal(streams[0].status, 200);
    assert_int_equal(streams[0].length, 5);
}

static void a_head_is_decoded_once_for_each_target(void **state)
{
    (void)state;
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    receive_answer(HEAD_5);
    assert_int_equal(memory.heads[0].block_len, HEAD_5.len);
    memory.heads[0].length = 7; /* the next answer shows whether the head was recognised */
    open_stream(0, 0);
    assert_int_equal(receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 3, HEAD_5),
                     LOAD_FRAMES_ANSWER);
    assert_int_equal(streams[0].length, 7);
    open_stream(1, 0); /* of another target */
    assert_int_equal(receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 5, HEAD_5),
                     LOAD_FRAMES_ANSWER);
    assert_int_equal(streams[1].length, 5);
}

/* The same bytes add a field to a table that has space, and none to a table of size 0. */
static void a_head_that_changes_the_table_is_always_decoded(void **state)
{
    (void)state;
    static const struct span stores = { "\x88\x5c\x01"
                                        "5",
                                        4 };
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    receive_answer(SPAN("\x20\x88\x0f\x0d\x01"
                        "5")); /* the encoder chooses size 0 */
    assert_int_equal(memory.heads[0].block_len, 0);
    receive_answer(stores);
    assert_int_equal(memory.heads[0].block_len, stores.len);
    assert_int_equal(h.table.count, 0);
    load_http2_begin(&h, streams, PLACES, false, &out); /* another connection, with a table */
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    receive_answer(stores);
    assert_int_equal(h.table.count, 1);
    receive_answer(SPAN("\x88\xbe")); /* refers to the stored field */
    free(h.table.memory);
    h.table.memory = NULL;
}

static void frames_of_closed_streams_are_ignored_and_their_fields_stored(void **state)
{
    (void)state;
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    receive_answer(SPAN("\x88\x5c\x01"
                        "5"));
    open_stream(0, 0);
    open_stream(1, 0);
    out.len = 0;
    load_http2_cancel(&h, 0, &out);
    assert_int_equal(http2_frame_read(out.at).type, HTTP2_FRAME_RST_STREAM);
    assert_int_equal(http2_frame_read_u32(out.at + HTTP2_FRAME_HEAD), HTTP2_CANCEL);
    assert_false(load_http2_may_open(&h));
    assert_int_equal(receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 3,
                             SPAN("\x88\x40\x01"
                                  "a\x01"
                                  "b")),
                     LOAD_FRAMES_MORE);
    assert_int_equal(h.table.count, 2);
    assert_int_equal(receive(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, 3, SPAN("hello")),
                     LOAD_FRAMES_MORE);
    assert_int_equal(receive(HTTP2_FRAME_RST_STREAM, 0, 3, SPAN("\0\0\0\x8")), LOAD_FRAMES_MORE);
    assert_int_equal(receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 5, SPAN("\x88\xbf")),
                     LOAD_FRAMES_ANSWER);
    assert_int_equal(streams[1].length, 5);
}

static void a_stream_can_move_while_its_data_arrives(void **state)
{
    (void)state;
    struct span first = SPAN("\0\0\5\0\1\0\0\0\1hel"), rest = SPAN("lo");
    (void)receive(HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    open_stream(0, 0);
    (void)receive(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 1, HEAD_5);
    assert_int_equal(read_all(first), LOAD_FRAMES_DATA);
    assert_false(arrival.ended);
    load_http2_move(&h, 0, 3);
    assert_int_equal(read_all(rest), LOAD_FRAMES_DATA);
    assert_true(arrival.ended);
    assert_int_equal(arrival.place, 3);
    assert_int_equal(streams[3].received, 5);
    assert_int_equal(h.open, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(one_stream_is_open_before_the_settings_arrive),
        TEST(the_first_request_fills_the_table_and_later_ones_use_it),
        TEST(a_smaller_table_makes_requests_plain_after_one_size_update),
        TEST(a_request_needs_all_of_its_space),
        TEST(bodies_keep_to_both_windows),
        TEST(a_window_below_zero_sends_nothing),
        TEST(longer_frames_are_sent_when_the_server_accepts_them),
        TEST(received_bytes_are_refunded_when_they_are_half_of_the_window),
        TEST(a_head_is_decoded_once_for_each_target),
        TEST(a_head_that_changes_the_table_is_always_decoded),
        TEST(frames_of_closed_streams_are_ignored_and_their_fields_stored),
        TEST(a_stream_can_move_while_its_data_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
