/* SPDX-License-Identifier: MIT
 *
 * DATA and flow control in both directions, and header blocks over several frames.
 */
#include "unit/http2/wire.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static const char zeros[16384];

/* RFC 9113 section 6.1: padding is no data, and a byte before it counts it. */
static void removes_padding_from_data(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED, 1, SPAN("\3abc\0\0\0"));
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED, 1, SPAN("\0de"));
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED | HTTP2_FRAME_END_STREAM, 1, SPAN("\2\0\0"));
    assert_int_equal(w.count, 4);
    assert_int_equal(w.event[1].data_len, 3);
    assert_int_equal(w.event[2].data_len, 2);
    assert_int_equal(w.event[3].data_len, 0);
    assert_true(w.event[3].end);
    assert_int_equal(w.c.received, 7 + 3 + 3); /* padding counts (RFC 9113 section 6.9.1) */
}

/* RFC 9113 section 6.1. */
static void refuses_data_with_more_padding_than_payload(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED, 1, SPAN("\4abc"));
    wire_assert_failed(&w, HTTP2_FAULT_PADDING, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9113 section 6.2. */
static void refuses_headers_with_more_padding_than_payload(void **state)
{
    (void)state;
    static const struct wire_frame rows[] = {
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PADDED, 1, SPAN("\1") },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PADDED, 1, SPAN("\4\x82\x84\x86") },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PADDED | HTTP2_FRAME_PRIORITISED, 1,
          SPAN("\2\0\0\0\0\1\x82") },
    };
    static struct wire w;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_open(&w);
        wire_send(&w, rows[i].type, rows[i].flags | HTTP2_FRAME_END_HEADERS, 1, rows[i].payload);
        wire_assert_failed(&w, HTTP2_FAULT_PADDING, HTTP2_PROTOCOL_ERROR);
    }
}

/* RFC 9113 section 6.2: padding and the fields of RFC 7540's priorities are no part of a block. */
static void removes_padding_and_priority_from_headers(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags;
        struct span payload, block;
    } rows[] = {
        { 0, SPAN(""), SPAN("") },
        { 0, SPAN("\x82\x84"), SPAN("\x82\x84") },
        { HTTP2_FRAME_PADDED, SPAN("\0\x82\x84"), SPAN("\x82\x84") },
        { HTTP2_FRAME_PADDED, SPAN("\3\x82\x84\0\0\0"), SPAN("\x82\x84") },
        { HTTP2_FRAME_PRIORITISED, SPAN("\x80\0\0\0\xff\x82"), SPAN("\x82") },
        { HTTP2_FRAME_PRIORITISED | HTTP2_FRAME_PADDED, SPAN("\1\0\0\0\1\20\x82\0"), SPAN("\x82") },
        { HTTP2_FRAME_PRIORITISED | HTTP2_FRAME_PADDED, SPAN("\0\0\0\0\0\20"), SPAN("") },
    };
    static struct wire w;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_open(&w);
        wire_send(&w, HTTP2_FRAME_HEADERS, rows[i].flags | HTTP2_FRAME_END_HEADERS, 1,
                  rows[i].payload);
        assert_int_equal(w.event[0].kind, HTTP2_REQUEST);
        assert_int_equal(w.event[0].block_len, rows[i].block.len);
        assert_memory_equal(w.block, rows[i].block.at, rows[i].block.len);
        assert_int_equal(wire_stream(&w, 1)->urgency, HTTP2_URGENCY_DEFAULT);
    }
}

/* RFC 9113 sections 4.3 and 6.10. */
static void joins_a_block_over_several_frames_at_any_split(void **state)
{
    (void)state;
    static const char bytes[] = "\0\0\4\1\x9\0\0\0\1\1ab\0" /* HEADERS, padded, END_STREAM */
                                "\0\0\0\x9\0\0\0\0\1"
                                "\0\0\3\x9\0\0\0\0\1cde"
                                "\0\0\1\x9\4\0\0\0\1f";
    static struct wire w;
    for (size_t split = 0; split < sizeof(bytes); split++) {
        wire_open(&w);
        wire_feed(&w, span_of(bytes, split));
        assert_int_equal(w.count, split == sizeof(bytes) - 1);
        wire_feed(&w, span_of(bytes + split, sizeof(bytes) - 1 - split));
        assert_int_equal(w.count, 1);
        assert_int_equal(w.event[0].kind, HTTP2_REQUEST);
        assert_int_equal(w.event[0].block_len, 6);
        assert_true(w.event[0].end);
        assert_memory_equal(w.block, "abcdef", 6);
    }
}

/* RFC 9113 section 6.10: nothing comes between the frames of a block. */
static void refuses_a_block_that_is_interrupted(void **state)
{
    (void)state;
    static const struct wire_frame rows[] = {
        { HTTP2_FRAME_DATA, 0, 1, SPAN("") },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 1, SPAN("\x82") },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 3, SPAN("\x82") },
        { HTTP2_FRAME_PING, 0, 0, SPAN("12345678") },
        { HTTP2_FRAME_SETTINGS, 0, 0, SPAN("") },
        { HTTP2_FRAME_PRIORITY, 0, 1, SPAN("\0\0\0\0\0") },
        { HTTP2_FRAME_CONTINUATION, HTTP2_FRAME_END_HEADERS, 3, SPAN("\x82") },
        { HTTP2_FRAME_CONTINUATION, HTTP2_FRAME_END_HEADERS, 0, SPAN("\x82") },
        { 0xee, 0, 0, SPAN("an extension (RFC 9113 section 5.5)") },
    };
    static struct wire w;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_open(&w);
        wire_send(&w, HTTP2_FRAME_HEADERS, 0, 1, SPAN("\x82"));
        assert_int_equal(w.count, 0);
        wire_send(&w, rows[i].type, rows[i].flags, rows[i].stream, rows[i].payload);
        assert_int_equal(w.count, 1);
        wire_assert_failed(&w, HTTP2_FAULT_BLOCK_ORDER, HTTP2_PROTOCOL_ERROR);
    }
}

static void limits_the_bytes_of_a_block(void **state)
{
    (void)state;
    static struct wire w;
    size_t second = HTTP2_BLOCK_MAX - sizeof(zeros) - 2 * HTTP2_FRAME_HEAD;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_HEADERS, 0, 1, span_of(zeros, sizeof(zeros)));
    wire_send(&w, HTTP2_FRAME_CONTINUATION, HTTP2_FRAME_END_HEADERS, 1, span_of(zeros, second));
    assert_int_equal(w.event[0].kind, HTTP2_REQUEST);
    assert_int_equal(w.event[0].block_len, sizeof(zeros) + second);
    wire_send(&w, HTTP2_FRAME_HEADERS, 0, 3, span_of(zeros, sizeof(zeros)));
    wire_send(&w, HTTP2_FRAME_CONTINUATION, 0, 3, span_of(zeros, second + 1));
    wire_assert_failed(&w, HTTP2_FAULT_BLOCK_LENGTH, HTTP2_ENHANCE_YOUR_CALM);
}

/* RFC 9113 section 6.9: padding is refunded too. The last frame of a stream refunds only the
 * connection. */
static void refunds_what_it_has_received_in_batches(void **state)
{
    (void)state;
    static struct wire w;
    uint32_t connection = 0, stream = 0;
    wire_open(&w);
    wire_request(&w, 1, false);
    for (unsigned i = 0; i < 100; i++)
        wire_send(&w, HTTP2_FRAME_DATA, i == 99 ? HTTP2_FRAME_END_STREAM : 0, 1,
                  span_of(zeros, 16000));
    unsigned frames = 0;
    while (wire_has_sent(&w)) {
        struct span payload;
        struct http2_frame frame = wire_read(&w, &payload);
        assert_int_equal(frame.type, HTTP2_FRAME_WINDOW_UPDATE);
        uint32_t *refunded = frame.stream == 0 ? &connection : &stream;
        *refunded += http2_frame_read_u32(payload.at);
        frames++;
    }
    assert_int_equal(connection, 99 * 16000);
    assert_int_equal(stream, 99 * 16000);
    assert_int_equal(frames, 66);
    assert_true(w.event[w.count - 1].end);
}

/* Sends a request and makes its stream want to send. */
static struct http2_stream *wanting(struct wire *w, uint32_t id)
{
    wire_request(w, id, true);
    struct http2_stream *stream = wire_stream(w, id);
    http2_connection_want(&w->c, stream);
    return stream;
}

/* RFC 9113 section 6.9.1: a sender respects both windows. */
static void sends_no_more_than_both_windows_allow(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    struct http2_stream *one = wanting(&w, 1);
    assert_ptr_equal(http2_connection_next(&w.c), one);
    assert_int_equal(http2_connection_allows(&w.c, one), 16384);
    for (unsigned i = 0; i < 3; i++)
        http2_connection_spend(&w.c, one, 16384);
    assert_int_equal(http2_connection_allows(&w.c, one), 16383);
    http2_connection_spend(&w.c, one, 16383);
    assert_int_equal(http2_connection_allows(&w.c, one), 0);
    assert_null(http2_connection_next(&w.c));

    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1000);
    assert_null(http2_connection_next(&w.c));
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 10);
    assert_ptr_equal(http2_connection_next(&w.c), one);
    assert_int_equal(http2_connection_allows(&w.c, one), 10);
}

/* RFC 9113 section 6.9.2: a smaller initial window can make a window negative. */
static void tracks_a_negative_window(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    struct http2_stream *one = wanting(&w, 1);
    http2_connection_spend(&w.c, one, 16384);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 1000);
    assert_int_equal(one->window, 1000 - 16384);
    assert_int_equal(http2_connection_allows(&w.c, one), 0);
    assert_null(http2_connection_next(&w.c));
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 15384);
    assert_int_equal(one->window, 0);
    assert_null(http2_connection_next(&w.c));
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1);
    assert_ptr_equal(http2_connection_next(&w.c), one);

    struct http2_stream *three = wanting(&w, 3); /* and a later stream begins with it */
    assert_int_equal(three->window, 1000);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0);
    assert_null(http2_connection_next(&w.c));
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 5000);
    assert_int_equal(one->window, 4001);
    assert_int_equal(three->window, 5000);
    assert_int_equal(w.c.window, HTTP2_WINDOW - 16384); /* the connection's does not change */
}

/* RFC 9113 section 6.9.2. */
static void refuses_an_initial_window_that_makes_another_too_large(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x7ffffffe);
    assert_int_equal(wire_stream(&w, 1)->window, 0x7fffffff);
    wire_set(&w, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x7fffffff);
    wire_assert_failed(&w, HTTP2_FAULT_SETTING_WINDOW, HTTP2_FLOW_CONTROL_ERROR);
}

/* RFC 9113 section 6.9.1: a window reaches 2^31-1 bytes and not more. */
static void a_window_has_a_largest_size(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 0x7fffffff - HTTP2_WINDOW);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 0x7fffffff - HTTP2_WINDOW);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.c.window, 0x7fffffff);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1);
    wire_assert_reset(&w, 1, HTTP2_FAULT_WINDOW_OVERFLOW, HTTP2_FLOW_CONTROL_ERROR);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 0, 1);
    wire_assert_failed(&w, HTTP2_FAULT_WINDOW_OVERFLOW, HTTP2_FLOW_CONTROL_ERROR);
}

/* The caller resets a stream while its DATA is being read: the rest of the frame is skipped. */
static void skips_the_rest_of_data_after_a_reset(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_feed(&w, SPAN("\0\0\6\0\1\0\0\0\1abc"));
    assert_int_equal(w.event[1].data_len, 3);
    assert_false(w.event[1].end);
    http2_connection_reset(&w.c, &w.out, wire_stream(&w, 1), HTTP2_FAULT_MALFORMED);
    wire_feed(&w, SPAN("def"));
    wire_request(&w, 3, true);
    assert_int_equal(w.count, 3);
    assert_int_equal(w.event[2].kind, HTTP2_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(removes_padding_from_data),
        cmocka_unit_test(refuses_data_with_more_padding_than_payload),
        cmocka_unit_test(refuses_headers_with_more_padding_than_payload),
        cmocka_unit_test(removes_padding_and_priority_from_headers),
        cmocka_unit_test(joins_a_block_over_several_frames_at_any_split),
        cmocka_unit_test(refuses_a_block_that_is_interrupted),
        cmocka_unit_test(limits_the_bytes_of_a_block),
        cmocka_unit_test(refunds_what_it_has_received_in_batches),
        cmocka_unit_test(sends_no_more_than_both_windows_allow),
        cmocka_unit_test(tracks_a_negative_window),
        cmocka_unit_test(refuses_an_initial_window_that_makes_another_too_large),
        cmocka_unit_test(a_window_has_a_largest_size),
        cmocka_unit_test(skips_the_rest_of_data_after_a_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
