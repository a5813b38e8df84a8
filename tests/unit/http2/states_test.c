/* SPDX-License-Identifier: MIT
 *
 * Every type of frame on a stream in every state, and the order of streams: what the server
 * accepts, and with which error it answers the rest.
 */
#include "unit/http2/wire.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Streams of a connection, by their state. */
enum { CONNECTION, OPEN, HALF, ENDED, OURS, THEIRS, SKIPPED, IDLE, EVEN, STATES };
static const uint32_t stream_of[STATES] = { 0, 1, 3, 5, 7, 9, 11, 15, 2 };
static const char *const state_names[STATES] = { "0",
                                                 "open",
                                                 "half-closed (remote)",
                                                 "closed",
                                                 "reset by the server",
                                                 "reset by the client",
                                                 "skipped",
                                                 "idle",
                                                 "idle and even" };

static void build_states(struct wire *w)
{
    wire_open(w);
    wire_request(w, stream_of[OPEN], false);
    wire_request(w, stream_of[HALF], true);
    wire_request(w, stream_of[ENDED], true);
    http2_connection_end(&w->c, &w->out, wire_stream(w, stream_of[ENDED]));
    wire_request(w, stream_of[OURS], false);
    http2_connection_reset(&w->c, &w->out, wire_stream(w, stream_of[OURS]), HTTP2_FAULT_MALFORMED);
    wire_request(w, stream_of[THEIRS], false);
    wire_send_u32(w, HTTP2_FRAME_RST_STREAM, stream_of[THEIRS], HTTP2_CANCEL);
    wire_request(w, 13, true);
    assert_int_equal(http2_connection_open(&w->c), 3);
    wire_forget(w);
}

/* The error of a connection or a stream, as `C1` for PROTOCOL_ERROR and `s5` for STREAM_CLOSED;
 * `-` when the frame is accepted. */
static void describe_error(struct wire *w, char *text)
{
    (void)strcpy(text, "-");
    while (wire_has_sent(w)) {
        struct span payload;
        struct http2_frame frame = wire_read(w, &payload);
        if (frame.type == HTTP2_FRAME_GOAWAY)
            (void)snprintf(text, 4, "C%x", http2_frame_read_u32(payload.at + 4));
        if (frame.type == HTTP2_FRAME_RST_STREAM)
            (void)snprintf(text, 4, "s%x", http2_frame_read_u32(payload.at));
    }
}

enum { END = HTTP2_FRAME_END_STREAM | HTTP2_FRAME_END_HEADERS };

static const struct {
    const char *name;
    struct wire_frame frame;
    const char *expected[STATES];
} rows[] = {
    { "DATA",
      { HTTP2_FRAME_DATA, 0, 0, SPAN("abc") },
      { "C1", "-", "s5", "C5", "-", "C5", "C5", "C1", "C1" } },
    { "DATA that ends",
      { HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, 0, SPAN("") },
      { "C1", "-", "s5", "C5", "-", "C5", "C5", "C1", "C1" } },
    { "HEADERS",
      { HTTP2_FRAME_HEADERS, END, 0, SPAN("\x82") },
      { "C1", "-", "s5", "C5", "-", "C5", "C1", "-", "C1" } },
    { "HEADERS that do not end",
      { HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 0, SPAN("\x82") },
      { "C1", "s1", "s5", "C5", "-", "C5", "C1", "-", "C1" } },
    { "PRIORITY",
      { HTTP2_FRAME_PRIORITY, 0, 0, SPAN("\0\0\0\3\17") },
      { "C1", "-", "-", "-", "-", "-", "-", "-", "-" } },
    { "PRIORITY of 4 bytes",
      { HTTP2_FRAME_PRIORITY, 0, 0, SPAN("\0\0\0\3") },
      { "C1", "s6", "s6", "C6", "C6", "C6", "C6", "C6", "C6" } },
    { "RST_STREAM",
      { HTTP2_FRAME_RST_STREAM, 0, 0, SPAN("\0\0\0\10") },
      { "C1", "-", "-", "-", "-", "-", "-", "C1", "C1" } },
    { "SETTINGS",
      { HTTP2_FRAME_SETTINGS, 0, 0, SPAN("") },
      { "-", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "PUSH_PROMISE",
      { HTTP2_FRAME_PUSH_PROMISE, HTTP2_FRAME_END_HEADERS, 0, SPAN("\0\0\0\2\x82") },
      { "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "PING",
      { HTTP2_FRAME_PING, 0, 0, SPAN("12345678") },
      { "-", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "GOAWAY",
      { HTTP2_FRAME_GOAWAY, 0, 0, SPAN("\0\0\0\0\0\0\0\0bye") },
      { "-", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "WINDOW_UPDATE",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\0\0\1") },
      { "-", "-", "-", "-", "-", "-", "-", "C1", "C1" } },
    { "WINDOW_UPDATE of 0",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\0\0\0\0") },
      { "C1", "s1", "s1", "-", "-", "-", "-", "C1", "C1" } },
    { "WINDOW_UPDATE too large",
      { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, SPAN("\x7f\xff\xff\xff") },
      { "C3", "s3", "s3", "-", "-", "-", "-", "C1", "C1" } },
    { "CONTINUATION",
      { HTTP2_FRAME_CONTINUATION, HTTP2_FRAME_END_HEADERS, 0, SPAN("\x82") },
      { "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "PRIORITY_UPDATE",
      { HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\1u=1") },
      { "-", "C1", "C1", "C1", "C1", "C1", "C1", "C1", "C1" } },
    { "an unknown type",
      { 0xfa, 0xff, 0, SPAN("anything") },
      { "-", "-", "-", "-", "-", "-", "-", "-", "-" } },
};

/* RFC 9113 section 5.1: the states of a stream. RFC 9113 sections 6.1 to 6.10: the streams that
 * each type of frame can have. */
static void accepts_each_frame_only_in_the_right_states(void **state)
{
    (void)state;
    static struct wire w;
    for (size_t row = 0; row < COUNT(rows); row++)
        for (size_t at = 0; at < STATES; at++) {
            char error[16];
            build_states(&w);
            struct wire_frame frame = rows[row].frame;
            wire_send(&w, frame.type, frame.flags, stream_of[at], frame.payload);
            assert_int_equal(w.kept_len, 0);
            describe_error(&w, error);
            if (strcmp(error, rows[row].expected[at]) != 0)
                fail_msg("%s on a stream that is %s: %s, expected %s", rows[row].name,
                         state_names[at], error, rows[row].expected[at]);
        }
}

/* RFC 9113 section 5.1.1. */
static void a_new_stream_is_above_all_earlier_ones(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 5, true);
    wire_request(&w, 7, true);
    assert_int_equal(w.count, 2);
    wire_request(&w, 3, true);
    wire_assert_failed(&w, HTTP2_FAULT_STREAM_ORDER, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9113 section 5.1.1. */
static void streams_of_a_client_are_odd(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 4, true);
    wire_assert_failed(&w, HTTP2_FAULT_STREAM_ORDER, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9113 section 5.1.1: the largest number of a stream is 2^31-1. */
static void opens_the_last_stream_that_a_connection_can_have(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 0x7fffffff, true);
    assert_int_equal(w.event[0].kind, HTTP2_REQUEST);
    assert_int_equal(w.event[0].stream, 0x7fffffff);
    wire_request(&w, 1, true);
    assert_int_equal(w.event[1].kind, HTTP2_DROP);
}

/* RFC 9113 section 5.1: a client can only have forgotten, not violated, what is long past. */
static void ignores_frames_on_streams_that_are_long_closed(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    for (uint32_t id = 1; id <= 131; id += 2) {
        wire_request(&w, id, true);
        http2_connection_end(&w.c, &w.out, wire_stream(&w, id));
    }
    wire_forget(&w);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 3, SPAN("abc"));
    assert_int_equal(w.count, 0);
    wire_request(&w, 3, true);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.event[0].kind, HTTP2_DROP);
    assert_int_equal(w.event[0].block_len, 2);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 5, SPAN("abc"));
    wire_assert_failed(&w, HTTP2_FAULT_CLOSED_STREAM, HTTP2_STREAM_CLOSED);
}

/* RFC 9113 sections 5.1 and 5.4.2: frames that were on the way when the server reset a stream are
 * processed as far as they change the connection. */
static void counts_data_on_a_stream_that_the_server_has_reset(void **state)
{
    (void)state;
    static struct wire w;
    static char body[16384];
    wire_open(&w);
    wire_request(&w, 1, false);
    http2_connection_reset(&w.c, &w.out, wire_stream(&w, 1), HTTP2_FAULT_MALFORMED);
    wire_forget(&w);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 1, span_of(body, sizeof(body)));
    wire_send(&w, HTTP2_FRAME_DATA, 0, 1, span_of(body, sizeof(body)));
    assert_int_equal(w.count, 0);
    struct span payload;
    struct http2_frame frame = wire_read(&w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_WINDOW_UPDATE);
    assert_int_equal(frame.stream, 0);
    assert_int_equal(http2_frame_read_u32(payload.at), 2 * sizeof(body));

    wire_send(&w, HTTP2_FRAME_HEADERS, END, 1, SPAN("\x82\x84"));
    assert_int_equal(w.event[0].kind, HTTP2_DROP);
    assert_int_equal(w.event[0].fault, HTTP2_FAULT_NONE);
    assert_memory_equal(w.block, "\x82\x84", 2);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 5.4.2: RST_STREAM does not answer RST_STREAM. */
static void a_client_resets_its_stream(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    http2_connection_want(&w.c, wire_stream(&w, 1));
    wire_forget(&w);
    wire_send_u32(&w, HTTP2_FRAME_RST_STREAM, 1, 0xabcdef01);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.event[0].kind, HTTP2_RESET);
    assert_int_equal(w.event[0].stream, 1);
    assert_int_equal(w.event[0].fault, HTTP2_FAULT_NONE);
    assert_int_equal(w.event[0].error, 0xabcdef01); /* RFC 9113 section 7: any code is allowed */
    assert_false(wire_has_sent(&w));
    assert_int_equal(http2_connection_open(&w.c), 0);
    assert_null(http2_connection_next(&w.c));
}

/* RFC 9113 section 5.1.2. */
static void refuses_streams_above_the_limit(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    for (unsigned i = 0; i < HTTP2_STREAMS_MAX; i++)
        wire_request(&w, 2 * i + 1, i % 2 == 0);
    assert_int_equal(w.count, HTTP2_STREAMS_MAX);
    for (unsigned i = 0; i < w.count; i++)
        assert_int_equal(w.event[i].kind, HTTP2_REQUEST);
    assert_false(wire_has_sent(&w));
    wire_forget(&w);

    wire_request(&w, 201, false);
    assert_int_equal(w.event[0].kind, HTTP2_DROP);
    assert_int_equal(w.event[0].fault, HTTP2_FAULT_REFUSED);
    assert_int_equal(w.event[0].block_len, 2);
    struct span payload;
    struct http2_frame frame = wire_read(&w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_RST_STREAM);
    assert_int_equal(frame.stream, 201);
    assert_int_equal(http2_frame_read_u32(payload.at), HTTP2_REFUSED_STREAM);
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, 201, SPAN("body on its way"));
    assert_int_equal(w.count, 1);

    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    wire_request(&w, 203, true);
    assert_int_equal(w.event[1].kind, HTTP2_REQUEST);
}

/* RFC 9113 section 6.5.2: the server announces the limit that the caller has chosen. */
static void announces_and_keeps_a_lower_limit_of_streams(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    http2_connection_begin(&w.c, 2, &w.out);
    w.c.streams = &w.streams;
    struct span settings;
    assert_int_equal(wire_read(&w, &settings).type, HTTP2_FRAME_SETTINGS);
    assert_int_equal(settings.at[1], HTTP2_FRAME_MAX_CONCURRENT_STREAMS);
    assert_int_equal(http2_frame_read_u32(settings.at + 2), 2);
    wire_feed(&w, HTTP2_FRAME_PREFACE);
    wire_send(&w, HTTP2_FRAME_SETTINGS, 0, 0, SPAN(""));
    wire_forget(&w);
    for (unsigned i = 0; i < 3; i++)
        wire_request(&w, 2 * i + 1, true);
    assert_int_equal(w.event[1].kind, HTTP2_REQUEST);
    assert_int_equal(w.event[2].fault, HTTP2_FAULT_REFUSED);
}

/* RFC 9113 section 8.1: the server may answer before the request has ended. Then it asks the client
 * to stop. */
static void an_early_answer_asks_the_client_to_stop(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    struct span payload;
    struct http2_frame frame = wire_read(&w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_RST_STREAM);
    assert_int_equal(http2_frame_read_u32(payload.at), HTTP2_NO_ERROR);
    wire_forget(&w);
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, 1, SPAN("on its way"));
    assert_int_equal(w.count, 0);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 8.1. */
static void trailers_end_the_request(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 1, SPAN("body"));
    wire_send(&w, HTTP2_FRAME_HEADERS, END, 1, SPAN("\x40\1a\1b"));
    assert_int_equal(w.count, 3);
    assert_int_equal(w.event[2].kind, HTTP2_TRAILERS);
    assert_true(w.event[2].end);
    assert_memory_equal(w.block, "\x40\1a\1b", 5);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 1, SPAN("more"));
    wire_assert_reset(&w, 1, HTTP2_FAULT_CLOSED_STREAM, HTTP2_STREAM_CLOSED);
}

/* RFC 9113 section 4.3: the block of a request that is reset still changes the decoder's table. */
static void hands_over_the_block_of_a_stream_that_it_resets(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_send(&w, HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 1, SPAN("\x40\1a\1b"));
    wire_assert_reset(&w, 1, HTTP2_FAULT_TRAILERS, HTTP2_PROTOCOL_ERROR);
    assert_int_equal(w.event[1].block_len, 5);
    assert_memory_equal(w.block, "\x40\1a\1b", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_each_frame_only_in_the_right_states),
        cmocka_unit_test(a_new_stream_is_above_all_earlier_ones),
        cmocka_unit_test(streams_of_a_client_are_odd),
        cmocka_unit_test(opens_the_last_stream_that_a_connection_can_have),
        cmocka_unit_test(ignores_frames_on_streams_that_are_long_closed),
        cmocka_unit_test(counts_data_on_a_stream_that_the_server_has_reset),
        cmocka_unit_test(a_client_resets_its_stream),
        cmocka_unit_test(refuses_streams_above_the_limit),
        cmocka_unit_test(announces_and_keeps_a_lower_limit_of_streams),
        cmocka_unit_test(an_early_answer_asks_the_client_to_stop),
        cmocka_unit_test(trailers_end_the_request),
        cmocka_unit_test(hands_over_the_block_of_a_stream_that_it_resets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
