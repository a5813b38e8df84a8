/* SPDX-License-Identifier: MIT
 *
 * Which stream sends next, and how clients give priorities.
 */
#include "http2/schedule.h"

#include "unit/http2/wire.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void want(struct wire *w, uint32_t id, unsigned urgency, bool incremental)
{
    wire_request(w, id, true);
    http2_connection_prioritise(
        &w->c, wire_stream(w, id),
        (struct http2_priority){ .urgency = (uint8_t)urgency, .incremental = incremental });
    http2_connection_want(&w->c, wire_stream(w, id));
}

/* Sends one frame of each stream whose turn it is, and asserts the order. */
static void assert_order(struct wire *w, const uint32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http2_stream *stream = http2_connection_next(&w->c);
        assert_non_null(stream);
        assert_ptr_equal(http2_connection_next(&w->c), stream);
        if (stream->id != ids[i])
            fail_msg("turn %zu: stream %u instead of %u", i, stream->id, ids[i]);
        http2_connection_spend(&w->c, stream, 1);
    }
}

#define ASSERT_ORDER(w, ...) \
    assert_order(w, (const uint32_t[]){ __VA_ARGS__ }, \
                 sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* RFC 9218 section 10: higher urgency first, and of equal urgency by stream number. */
static void serves_urgent_streams_first_and_then_by_number(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 5, false);
    want(&w, 3, 3, false);
    want(&w, 5, 3, false);
    want(&w, 7, 0, false);
    ASSERT_ORDER(&w, 7, 7, 7);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 7));
    ASSERT_ORDER(&w, 3, 3, 3);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 3));
    ASSERT_ORDER(&w, 5, 5);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 5));
    ASSERT_ORDER(&w, 1, 1);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    assert_null(http2_connection_next(&w.c));
}

/* RFC 9218 section 10: incremental streams share the bandwidth. */
static void incremental_streams_take_turns(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 3, true);
    want(&w, 3, 3, true);
    want(&w, 5, 3, true);
    ASSERT_ORDER(&w, 1, 3, 5, 1, 3);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 5));
    ASSERT_ORDER(&w, 1, 3, 1, 3);
    want(&w, 7, 3, true);
    ASSERT_ORDER(&w, 1, 3, 7, 1, 3, 7);
}

/* RFC 9218 section 10: neither kind starves the other of the same urgency. */
static void both_kinds_of_one_urgency_alternate(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 3, false);
    want(&w, 3, 3, true);
    want(&w, 5, 3, false);
    want(&w, 7, 3, true);
    ASSERT_ORDER(&w, 1, 3, 1, 7, 1, 3, 1, 7);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    ASSERT_ORDER(&w, 5, 3, 5, 7);
}

/* RFC 9218 section 10: it is recommended that no response starves. */
static void less_urgent_streams_get_one_frame_of_sixteen(void **state)
{
    (void)state;
    static struct wire w;
    unsigned turns[16] = { 0 };
    wire_open(&w);
    want(&w, 1, 0, false);
    want(&w, 3, 3, false);
    want(&w, 5, 7, true);
    want(&w, 7, 7, true);
    for (unsigned i = 0; i < 16 * 40; i++) {
        struct http2_stream *stream = http2_connection_next(&w.c);
        turns[stream->id]++;
        http2_connection_spend(&w.c, stream, 1);
        w.c.control = HTTP2_CONTROL_MAX;
    }
    assert_int_equal(turns[1], 600);
    assert_int_equal(turns[3], 20);
    assert_int_equal(turns[5], 10);
    assert_int_equal(turns[7], 10);
}

/* A stream whose window closes leaves the schedule, and comes back in its place. */
static void a_stream_with_a_closed_window_gives_way(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 3, false);
    want(&w, 3, 3, false);
    want(&w, 5, 3, false);
    wire_stream(&w, 1)->window = 2;
    wire_stream(&w, 3)->window = 1;
    ASSERT_ORDER(&w, 1, 1, 3, 5, 5);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 3, 100);
    ASSERT_ORDER(&w, 3, 3);
    wire_send_u32(&w, HTTP2_FRAME_WINDOW_UPDATE, 1, 1);
    ASSERT_ORDER(&w, 1, 3, 3);
    http2_connection_reset(&w.c, &w.out, wire_stream(&w, 3), HTTP2_FAULT_INTERNAL);
    ASSERT_ORDER(&w, 5);
}

/* RFC 9218 section 7.1. */
static void a_priority_update_moves_a_stream(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 3, false);
    want(&w, 3, 3, false);
    ASSERT_ORDER(&w, 1);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\3u=1"));
    ASSERT_ORDER(&w, 3, 3);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\1u=1, i"));
    ASSERT_ORDER(&w, 1, 3, 1, 3);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\3"));
    ASSERT_ORDER(&w, 1, 1, 1);
    http2_connection_prioritise(&w.c, wire_stream(&w, 3), (struct http2_priority){ 0, false });
    ASSERT_ORDER(&w, 1, 1); /* the frame overrides the field */
}

/* RFC 9218 section 7: a frame that comes before its request is kept. */
static void a_priority_update_can_come_before_its_stream(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\3u=0"));
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\7u=6"));
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\7u=2, i"));
    assert_int_equal(w.streams.early_count, 2);
    want(&w, 1, 3, false);
    assert_int_equal(wire_stream(&w, 1)->urgency, 3);
    assert_int_equal(w.streams.early_count, 2);
    want(&w, 5, 3, false); /* skips 3 */
    assert_int_equal(w.streams.early_count, 1);
    want(&w, 7, 7, false);
    assert_int_equal(wire_stream(&w, 7)->urgency, 2);
    assert_true(wire_stream(&w, 7)->incremental);
    assert_int_equal(w.streams.early_count, 0);
}

/* RFC 9218 section 7.1. */
static void refuses_priority_updates_of_streams_that_cannot_be(void **state)
{
    (void)state;
    static const struct span rows[] = { SPAN("\0\0\0\0u=1"), SPAN("\0\0\0\2u=1"),
                                        SPAN("\x80\0\0\0u=1") };
    static struct wire w;
    for (size_t i = 0; i < COUNT(rows); i++) {
        wire_open(&w);
        wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, rows[i]);
        wire_assert_failed(&w, HTTP2_FAULT_PRIORITY_UPDATE, HTTP2_PROTOCOL_ERROR);
    }
    wire_open(&w);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 1, SPAN("\0\0\0\1u=1"));
    wire_assert_failed(&w, HTTP2_FAULT_FRAME_STREAM, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9218 section 7.1: open streams, and idle ones with a priority, are at most
 * SETTINGS_MAX_CONCURRENT_STREAMS. */
static void limits_the_idle_streams_with_a_priority(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    wire_request(&w, 1, true);
    for (uint32_t i = 1; i < HTTP2_STREAMS_MAX; i++) {
        char payload[4];
        http2_frame_write_u32(payload, 2 * i + 1);
        wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, span_of(payload, 4));
    }
    assert_int_equal(w.count, 1);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\3u=5"));
    assert_int_equal(w.count, 1);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\xff\3u=5"));
    wire_assert_failed(&w, HTTP2_FAULT_PRIORITY_UPDATE, HTTP2_PROTOCOL_ERROR);
}

/* RFC 9218 section 7.1: a refused stream is no longer idle, so its priority takes no place. */
static void forgets_the_priority_of_a_stream_that_is_refused(void **state)
{
    (void)state;
    enum { LAST = 2 * HTTP2_STREAMS_MAX - 1, REFUSED = LAST + 2 };
    static struct wire w;
    wire_open(&w);
    for (uint32_t id = 1; id < LAST; id += 2)
        wire_request(&w, id, true);
    wire_send_u32(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, REFUSED);
    wire_request(&w, LAST, true);
    wire_request(&w, REFUSED, true);
    assert_null(http2_stream_find(&w.streams, REFUSED));
    assert_int_equal(w.streams.early_count, 0);

    http2_connection_end(&w.c, &w.out, wire_stream(&w, 1));
    wire_send_u32(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, REFUSED + 2);
    assert_int_equal(w.c.fault, HTTP2_FAULT_NONE);
    assert_int_equal(w.streams.early_count, 1);
}

/* The next connection that borrows a table finds nothing of the last one. */
static void a_released_table_is_empty(void **state)
{
    (void)state;
    static struct wire w;
    wire_open(&w);
    want(&w, 1, 0, true);
    want(&w, 3, 7, false);
    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\7u=0"));
    assert_int_equal(http2_connection_open(&w.c), 2);
    assert_ptr_equal(http2_connection_release(&w.c), &w.streams);
    assert_int_equal(http2_connection_open(&w.c), 0);
    assert_null(http2_connection_next(&w.c));
    assert_null(http2_connection_release(&w.c));
    assert_null(http2_stream_find(&w.streams, 1));
    w.c.streams = &w.streams;
    wire_request(&w, 7, true);
    assert_int_equal(wire_stream(&w, 7)->urgency, HTTP2_URGENCY_DEFAULT);
    http2_connection_end(&w.c, &w.out, wire_stream(&w, 7));
    assert_int_equal(w.streams.open + w.streams.ready, 0);

    wire_send(&w, HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\11u=0"));
    assert_int_equal(w.streams.early_count, 1);
    (void)http2_connection_release(&w.c);
    assert_int_equal(w.streams.early_count, 0);
}

/* RFC 9218 sections 4 and 5. RFC 9218 sections 4.1 and 4.2. */
static void reads_a_priority(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int urgency; /* -1: no dictionary */
        bool incremental;
    } rows[] = {
        { "", 3, false },
        { "u=0", 0, false },
        { "u=7, i", 7, true },
        { "i", 3, true },
        { "i=?1", 3, true },
        { "i=?0", 3, false },
        { " u=2 ,\ti ", 2, true },
        { "u=2,i,u=5", 5, true },
        { "i;a=b;c, u=1;x", 1, true },
        { "u=8", 3, false },
        { "u=-1", 3, false },
        { "u=1.0", 3, false },
        { "u=10", 3, false },
        { "u=\"1\"", 3, false },
        { "u", 3, false },
        { "u=1, u=9", 3, false },
        { "i=1", 3, false },
        { "other=(1 \"a,b\" 2);p=1, u=1", 1, false },
        { "s=\"a\\\"b, u=5\", u=1", 1, false },
        { "*k=1, u=4", 4, false },
        { "U=1", -1, false },
        { "u=1,", -1, false },
        { ",u=1", -1, false },
        { "u=1 i", 3, false },
        { "u=", -1, false },
        { "=1", -1, false },
        { "u:1", -1, false },
        { "1u=1", -1, false },
        { "s=\"open, u=1", -1, false },
        { "s=(open, u=1", -1, false },
        { "s=\"x\\", -1, false },
        { "u=1, \xff", -1, false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct guard guard;
        struct http2_priority priority = { .urgency = 77 };
        bool read = http2_priority_read(guard_text(&guard, rows[i].value), &priority);
        guard_done(&guard);
        int urgency = read ? priority.urgency : -1;
        if (urgency != rows[i].urgency || (read && priority.incremental != rows[i].incremental))
            fail_msg("`%s`: urgency %d", rows[i].value, urgency);
        if (!read)
            assert_int_equal(priority.urgency, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_urgent_streams_first_and_then_by_number),
        cmocka_unit_test(incremental_streams_take_turns),
        cmocka_unit_test(both_kinds_of_one_urgency_alternate),
        cmocka_unit_test(less_urgent_streams_get_one_frame_of_sixteen),
        cmocka_unit_test(a_stream_with_a_closed_window_gives_way),
        cmocka_unit_test(a_priority_update_moves_a_stream),
        cmocka_unit_test(a_priority_update_can_come_before_its_stream),
        cmocka_unit_test(refuses_priority_updates_of_streams_that_cannot_be),
        cmocka_unit_test(limits_the_idle_streams_with_a_priority),
        cmocka_unit_test(forgets_the_priority_of_a_stream_that_is_refused),
        cmocka_unit_test(a_released_table_is_empty),
        cmocka_unit_test(reads_a_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
