/* SPDX-License-Identifier: MIT
 *
 * How a connection begins and ends, and the frames that carry no requests: SETTINGS, PING, GOAWAY,
 * and the form of all others.
 */
#include "http2/control.h"

#include "unit/http2/wire.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* RFC 9113 section 3.4: the server's preface is a SETTINGS frame. RFC 9218 section 2.1: it says
 * that the priorities of RFC 7540 are ignored. */
static void begins_with_its_settings(void **state)
{
    (void)state;
    static struct wire w;
    struct span payload;
    wire_begin(&w);
    struct http2_frame frame = wire_read(&w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_SETTINGS);
    assert_int_equal(frame.flags, 0);
    assert_int_equal(frame.stream, 0);
    static const char expected[] = "\0\3\0\0\0\x64" /* MAX_CONCURRENT_STREAMS 100 */
                                   "\0\6\0\0\x70\0" /* MAX_HEADER_LIST_SIZE 28672 */
                                   "\0\11\0\0\0\1"; /* NO_RFC7540_PRIORITIES 1 */
    assert_int_equal(payload.len, sizeof(expected) - 1);
    assert_memory_equal(payload.at, expected, payload.len);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 3.4. */
static void reads_the_preface_at_any_split(void **state)
{
    (void)state;
    static struct wire w;
    static const char bytes[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    for (size_t split = 0; split < sizeof(bytes); split++) {
        wire_begin(&w);
        wire_forget(&w);
        wire_feed(&w, span_of(bytes, split));
        assert_int_equal(w.c.configured, split == sizeof(bytes) - 1);
        assert_int_equal(wire_feed(&w, span_of(bytes + split, sizeof(bytes) - 1 - split)),
                         HTTP2_MORE);
        struct http2_frame frame = wire_read(&w, NULL);
        assert_int_equal(frame.type, HTTP2_FRAME_SETTINGS);
        assert_int_equal(frame.flags, HTTP2_FRAME_ACK);
        assert_int_equal(w.count, 0);
    }
}

/* RFC 9113 section 3.4. */
static void refuses_another_beginning(void **state)
{
    (void)state;
    static const struct span rows[] = {
        SPAN("GET / HTTP/1.1\r\n\r\n"),
        SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"),
        SPAN("PRI * HTTP/1"),
        SPAN("x"),
        SPAN("\x16\x03\x01"),
        SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\10\6\0\0\0\0\0ABCDEFGH"),
        SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\1\0\0\0\0"),
        SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\1\1\5\0\0\0\1\x82"),
    };
    static struct wire w;
    for (size_t row = 0; row < COUNT(rows); row++) {
        wire_begin(&w);
        assert_int_equal(wire_feed(&w, rows[row]), HTTP2_FAILED);
        wire_assert_failed(&w, HTTP2_FAULT_PREFACE, HTTP2_PROTOCOL_ERROR);
        assert_int_equal(wire_feed(&w, SPAN("more")), HTTP2_FAILED);
    }
}

/* RFC 9113 section 4.2: sizes that a frame cannot have. RFC 9113 sections 6.4 to 6.10. */
static void refuses_frames_of_a_wrong_size(void **state)
{
    (void)state;
    static const char zeros[70000];
    static const struct {
        uint8_t type, flags;
        uint32_t stream;
        size_t len;
        enum http2_fault fault;
    } rows[] = {
        { HTTP2_FRAME_DATA, 0, 1, 16385, HTTP2_FAULT_FRAME_LENGTH },
        { HTTP2_FRAME_HEADERS, 4, 1, 16385, HTTP2_FAULT_FRAME_LENGTH },
        { HTTP2_FRAME_GOAWAY, 0, 0, 16385, HTTP2_FAULT_FRAME_LENGTH },
        { HTTP2_FRAME_SETTINGS, 0, 0, 16386, HTTP2_FAULT_FRAME_LENGTH },
        { 0xbb, 0, 0, 65536, HTTP2_FAULT_FRAME_LENGTH },
        { HTTP2_FRAME_DATA, HTTP2_FRAME_PADDED, 1, 0, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PADDED, 3, 0, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PRIORITISED, 3, 4, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_HEADERS, HTTP2_FRAME_PRIORITISED | HTTP2_FRAME_PADDED, 3, 5,
          HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_RST_STREAM, 0, 1, 3, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_RST_STREAM, 0, 1, 5, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_SETTINGS, 0, 0, 1, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_SETTINGS, 0, 0, 7, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_SETTINGS, HTTP2_FRAME_ACK, 0, 6, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_PING, 0, 0, 7, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_PING, 0, 0, 9, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_GOAWAY, 0, 0, 7, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_WINDOW_UPDATE, 0, 0, 3, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_WINDOW_UPDATE, 0, 1, 5, HTTP2_FAULT_FRAME_FORM },
        { HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, 3, HTTP2_FAULT_FRAME_FORM },
    };
    static struct wire w;
    for (size_t row = 0; row < COUNT(rows); row++) {
        wire_open(&w);
        wire_request(&w, 1, false);
        wire_send(&w, rows[row].type, rows[row].flags, rows[row].stream,
                  span_of(zeros, rows[row].len));
        wire_assert_failed(&w, rows[row].fault, HTTP2_FRAME_SIZE_ERROR);
    }
}

/* RFC 9113 section 4.2: every endpoint reads frames of 2^14 bytes. */
static void reads_frames_of_the_largest_size(void **state)
{
    (void)state;
    static const char zeros[16384];
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, false);
    wire_send(&w, HTTP2_FRAME_DATA, 0, 1, span_of(zeros, sizeof(zeros)));
    wire_send(&w, HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS, 3, span_of(zeros, sizeof(zeros)));
    wire_send(&w, HTTP2_FRAME_GOAWAY, 0, 0, span_of(zeros, sizeof(zeros)));
    wire_send(&w, 0xbb, 0, 77, span_of(zeros, sizeof(zeros)));
    assert_int_equal(w.count, 4);
    assert_int_equal(w.event[1].kind, HTTP2_DATA);
    assert_int_equal(w.event[1].data_len, sizeof(zeros));
    assert_int_equal(w.event[2].block_len, sizeof(zeros));
    assert_int_equal(w.event[3].kind, HTTP2_GOAWAY);
}

/* RFC 9113 section 4.1: the reserved bit of a stream, and flags that a type does not define, have
 * no meaning. */
static void ignores_the_reserved_bit_and_unused_flags(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS | 0xd2, 0x80000001, SPAN("\x82"));
    assert_int_equal(w.event[0].stream, 1);
    assert_false(w.event[0].end);
    wire_send(&w, HTTP2_FRAME_PING, 0xfe, 0x80000000, SPAN("12345678"));
    wire_send(&w, HTTP2_FRAME_SETTINGS, 0xfe, 0, SPAN(""));
    wire_send(&w, HTTP2_FRAME_WINDOW_UPDATE, 0xff, 1, SPAN("\x80\0\0\1"));
    assert_int_equal(w.count, 1);
    assert_int_equal(wire_stream(&w, 1)->window, HTTP2_WINDOW + 1);
    assert_int_equal(wire_read(&w, NULL).type, HTTP2_FRAME_PING);
    assert_int_equal(wire_read(&w, NULL).type, HTTP2_FRAME_SETTINGS);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 6.5.2, RFC 9218 section 2.1. */
static void checks_the_value_of_each_setting(void **state)
{
    (void)state;
    static const struct {
        unsigned setting;
        uint32_t value;
        enum http2_fault fault;
        uint32_t error;
    } rows[] = {
        { HTTP2_FRAME_HEADER_TABLE_SIZE, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_HEADER_TABLE_SIZE, UINT32_MAX, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_ENABLE_PUSH, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_ENABLE_PUSH, 1, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_ENABLE_PUSH, 2, HTTP2_FAULT_SETTING, HTTP2_PROTOCOL_ERROR },
        { HTTP2_FRAME_MAX_CONCURRENT_STREAMS, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x7fffffff, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x80000000, HTTP2_FAULT_SETTING_WINDOW,
          HTTP2_FLOW_CONTROL_ERROR },
        { HTTP2_FRAME_MAX_FRAME_SIZE, 16383, HTTP2_FAULT_SETTING, HTTP2_PROTOCOL_ERROR },
        { HTTP2_FRAME_MAX_FRAME_SIZE, 16384, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_MAX_FRAME_SIZE, 0xffffff, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_MAX_FRAME_SIZE, 0x1000000, HTTP2_FAULT_SETTING, HTTP2_PROTOCOL_ERROR },
        { HTTP2_FRAME_MAX_HEADER_LIST_SIZE, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_NO_RFC7540_PRIORITIES, 0, HTTP2_FAULT_NONE, 0 },
        { HTTP2_FRAME_NO_RFC7540_PRIORITIES, 2, HTTP2_FAULT_SETTING, HTTP2_PROTOCOL_ERROR },
        { HTTP2_FRAME_NO_RFC7540_PRIORITIES, 1, HTTP2_FAULT_SETTING, HTTP2_PROTOCOL_ERROR },
        { 0xffff, UINT32_MAX, HTTP2_FAULT_NONE, 0 },
    };
    static struct wire w;
    for (size_t row = 0; row < COUNT(rows); row++) {
        wire_open(&w);
        wire_set(&w, rows[row].setting, rows[row].value);
        if (rows[row].fault != HTTP2_FAULT_NONE) {
            wire_assert_failed(&w, rows[row].fault, rows[row].error);
            continue;
        }
        assert_int_equal(w.count, 0);
        struct http2_frame frame = wire_read(&w, NULL);
        assert_int_equal(frame.type, HTTP2_FRAME_SETTINGS);
        assert_int_equal(frame.flags, HTTP2_FRAME_ACK);
        assert_int_equal(frame.length, 0);
    }
}

/* RFC 9113 section 6.5.3: the values are processed in their order, and acknowledged once. */
static void the_last_value_of_a_setting_counts(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    wire_send(&w, HTTP2_FRAME_SETTINGS, 0, 0,
              SPAN("\0\4\0\0\0\1"
                   "\0\4\0\0\0\7"
                   "\0\11\0\0\0\0"));
    assert_int_equal(wire_stream(&w, 1)->window, 7);
    assert_int_equal(wire_read(&w, NULL).flags, HTTP2_FRAME_ACK);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 6.5.3. */
static void accepts_one_acknowledgement_of_its_settings(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    assert_false(w.c.acknowledged);
    wire_send(&w, HTTP2_FRAME_SETTINGS, HTTP2_FRAME_ACK, 0, SPAN(""));
    assert_true(w.c.acknowledged);
    assert_false(wire_has_sent(&w));
    wire_send(&w, HTTP2_FRAME_SETTINGS, HTTP2_FRAME_ACK, 0, SPAN(""));
    wire_assert_failed(&w, HTTP2_FAULT_SETTINGS_ACK, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9113 section 6.7. */
static void answers_a_ping_with_its_payload(void **state)
{
    (void)state;
    static struct wire w;
    struct span payload;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_PING, 0, 0, SPAN("\0\1\2\3\4\5\6\xff"));
    struct http2_frame frame = wire_read(&w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_PING);
    assert_int_equal(frame.flags, HTTP2_FRAME_ACK);
    assert_int_equal(frame.stream, 0);
    assert_true(span_equal(payload, SPAN("\0\1\2\3\4\5\6\xff")));
    wire_send(&w, HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, SPAN("\0\1\2\3\4\5\6\xff"));
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 6.8: the first GOAWAY excludes no stream. The second has the last one. */
static void ends_gracefully_in_two_steps(void **state)
{
    (void)state;
    static struct wire w;
    struct span payload;
    wire_open(&w);
    wire_request(&w, 1, true);
    http2_connection_drain(&w.c, &w.out);
    assert_int_equal(wire_read(&w, &payload).type, HTTP2_FRAME_GOAWAY);
    assert_true(span_equal(payload, SPAN("\x7f\xff\xff\xff\0\0\0\0")));
    struct http2_frame ping = wire_read(&w, &payload);
    assert_int_equal(ping.type, HTTP2_FRAME_PING);

    char echo[8];
    memcpy(echo, payload.at, 8);
    wire_request(&w, 3, true);
    assert_int_equal(w.event[1].kind, HTTP2_REQUEST);
    wire_send(&w, HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, SPAN("another1"));
    assert_false(wire_has_sent(&w));
    wire_send(&w, HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, span_of(echo, 8));
    assert_int_equal(wire_read(&w, &payload).type, HTTP2_FRAME_GOAWAY);
    assert_true(span_equal(payload, SPAN("\0\0\0\3\0\0\0\0")));

    wire_request(&w, 5, false);
    assert_int_equal(w.event[2].kind, HTTP2_DROP);
    wire_send(&w, HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, 5, SPAN("body"));
    assert_int_equal(w.count, 3);
    assert_false(wire_has_sent(&w));
    assert_false(http2_connection_drained(&w.c));
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 3));
    assert_true(http2_connection_drained(&w.c));
}

/* RFC 9113 section 6.8: the last stream of a later GOAWAY is not above that of an earlier one. */
static void a_failure_after_the_final_goaway_keeps_its_last_stream(void **state)
{
    (void)state;
    static struct wire w;
    struct span payload;
    wire_open(&w);
    wire_request(&w, 1, true);
    http2_connection_drain(&w.c, &w.out);
    http2_connection_drain(&w.c, &w.out);
    http2_connection_drain(&w.c, &w.out);
    wire_request(&w, 9, true);
    wire_send(&w, HTTP2_FRAME_PUSH_PROMISE, 0, 1, SPAN("\0\0\0\2"));
    assert_int_equal(wire_read(&w, NULL).type, HTTP2_FRAME_GOAWAY);
    assert_int_equal(wire_read(&w, NULL).type, HTTP2_FRAME_PING);
    assert_int_equal(wire_read(&w, NULL).type, HTTP2_FRAME_GOAWAY);
    assert_int_equal(wire_read(&w, &payload).type, HTTP2_FRAME_GOAWAY);
    assert_int_equal(http2_frame_read_u32(payload.at), 1);
    assert_int_equal(http2_frame_read_u32(payload.at + 4), HTTP2_PROTOCOL_ERROR);
    assert_false(wire_has_sent(&w));
}

/* RFC 9113 section 6.8. */
static void reports_that_the_client_goes(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    wire_send(&w, HTTP2_FRAME_GOAWAY, 0, 0, SPAN("\0\0\0\0\0\0\0\xb text for people"));
    assert_int_equal(w.event[1].kind, HTTP2_GOAWAY);
    assert_int_equal(w.event[1].error, HTTP2_ENHANCE_YOUR_CALM);
    assert_true(w.c.client_goes);
    assert_false(http2_connection_drained(&w.c));
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    assert_true(http2_connection_drained(&w.c));
}

/* RFC 9113 section 5.4.1: the caller can fail a connection, too, once. */
static void the_caller_fails_a_connection(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    http2_connection_fail(&w.c, &w.out, HTTP2_FAULT_COMPRESSION);
    http2_connection_fail(&w.c, &w.out, HTTP2_FAULT_INTERNAL);
    assert_int_equal(wire_request(&w, 1, true), HTTP2_FAILED);
    wire_assert_failed(&w, HTTP2_FAULT_COMPRESSION, HTTP2_COMPRESSION_ERROR);
}

static void waits_while_the_output_is_full(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    w.out.len = w.out.size - HTTP2_REPLY_ROOM + 1;
    assert_int_equal(wire_send(&w, HTTP2_FRAME_PING, 0, 0, SPAN("12345678")), HTTP2_FULL);
    assert_int_equal(w.kept_len, HTTP2_FRAME_HEAD + 8);
    w.out.len = 0;
    assert_int_equal(wire_feed(&w, SPAN("")), HTTP2_MORE);
    assert_int_equal(w.kept_len, 0);
    assert_int_equal(w.out.len, HTTP2_FRAME_HEAD + 8);

    w.out.len = w.out.size - 1; /* also while the connection fails */
    http2_control_fail(&w.c, HTTP2_FAULT_INTERNAL);
    assert_int_equal(wire_feed(&w, SPAN("")), HTTP2_FULL);
    w.out.len = w.out.size - HTTP2_REPLY_ROOM;
    assert_int_equal(wire_feed(&w, SPAN("")), HTTP2_FAILED);
    assert_false(w.out.overflow);
}

static void every_sentence_fits_into_the_room_for_a_reply(void **state)
{
    (void)state;
    for (int fault = 0; fault < HTTP2_FAULT_COUNT; fault++) {
        size_t len = http2_fault_sentence((enum http2_fault)fault).len;
        assert_true(HTTP2_FRAME_HEAD + 8 + len + 4 * 13 <= HTTP2_REPLY_ROOM);
        assert_int_equal(len == 0, fault == HTTP2_FAULT_NONE);
        struct span sentence = http2_fault_sentence((enum http2_fault)fault);
        assert_int_equal(http2_fault_limit((enum http2_fault)fault) != 0,
                         span_ends(sentence, SPAN("the limit")));
    }
}

static void an_idle_connection_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct http2_connection) <= 128);
    assert_int_equal(sizeof(struct http2_stream), 16);
    assert_true(sizeof(struct http2_streams) <= 3072);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_its_settings),
        cmocka_unit_test(reads_the_preface_at_any_split),
        cmocka_unit_test(refuses_another_beginning),
        cmocka_unit_test(refuses_frames_of_a_wrong_size),
        cmocka_unit_test(reads_frames_of_the_largest_size),
        cmocka_unit_test(ignores_the_reserved_bit_and_unused_flags),
        cmocka_unit_test(checks_the_value_of_each_setting),
        cmocka_unit_test(the_last_value_of_a_setting_counts),
        cmocka_unit_test(accepts_one_acknowledgement_of_its_settings),
        cmocka_unit_test(answers_a_ping_with_its_payload),
        cmocka_unit_test(ends_gracefully_in_two_steps),
        cmocka_unit_test(a_failure_after_the_final_goaway_keeps_its_last_stream),
        cmocka_unit_test(reports_that_the_client_goes),
        cmocka_unit_test(the_caller_fails_a_connection),
        cmocka_unit_test(waits_while_the_output_is_full),
        cmocka_unit_test(every_sentence_fits_into_the_room_for_a_reply),
        cmocka_unit_test(an_idle_connection_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
