/* SPDX-License-Identifier: MIT
 *
 * Answers over HTTP/2. The conformance cases run over HTTP/2, too. This tests what they cannot:
 * windows, deadlines, resets in every state, and files that change while they are sent.
 */
#include "framed.h"

/* ---- answers ---- */

static void answers_a_request_that_follows_the_preface(void **state)
{
    (void)state;
    begin(LARGEST);
    struct seen seen = exchange("/small.html");
    assert_int_equal(seen.status, 200);
    assert_int_equal(seen.body, SMALL_SIZE);
    assert_int_equal(seen.answers, 1);
    assert_int_equal(client.want, SESSION_READ);
    assert_true(session_idle(&client.s));
    end();
}

static void every_split_of_the_input_gives_the_same_bytes(void **state)
{
    (void)state;
    size_t whole_len = 0;
    static const size_t steps[] = { SIZE_MAX / 2, 1, 2, 3, 10, 24, 25 };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        begin(LARGEST);
        (void)add_get("/small.html");
        (void)add_get("/none");
        (void)add_request(HEAD_OF("HEAD", "/middle.bin"), true);
        const uint32_t stream = add_request(HEAD_OF("POST", "/small.html"), false);
        add_frame(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, stream, SPAN("body"));
        send_in_steps(steps[i]);
        receive(SIZE_MAX);
        if (i == 0) {
            struct seen seen = look(stream);
            assert_int_equal(seen.status, 405);
            assert_int_equal(seen.answers, 1);
            whole_len = client.in.len;
        }
        /* Each error page has an id of its own, so only the length is the same. */
        assert_int_equal(client.in.len, whole_len);
        end();
    }
}

static void answers_of_one_read_leave_in_one_send(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    begin(LARGEST);
    for (unsigned i = 0; i < COUNT; i++)
        (void)add_get("/small.html");
    send_frames();
    struct session_out out = session_output(&client.s);
    assert_int_equal(out.count, 1);
    const size_t len = out.piece[0].len;
    receive(len);
    assert_int_equal(look(0).answers, COUNT);
    assert_int_equal(client.want, SESSION_READ);
    end();
}

static void answers_as_many_streams_as_it_announces(void **state)
{
    (void)state;
    begin(LARGEST);
    for (unsigned i = 0; i < HTTP2_STREAMS_MAX; i++)
        (void)add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(0);
    assert_int_equal(seen.answers, HTTP2_STREAMS_MAX);
    assert_int_equal(seen.body, HTTP2_STREAMS_MAX * (size_t)MIDDLE_SIZE);
    assert_int_equal(references_of("/middle.bin"), 1);
    end();
}

static void answers_a_later_request_during_a_long_answer(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t first = add_get("/big.bin");
    send_frames();
    receive(1000);
    assert_int_equal(client.want, SESSION_READ | SESSION_WRITE);
    const uint32_t second = add_get("/small.html");
    send_frames();
    assert_true(client.want & SESSION_WRITE);
    receive(SIZE_MAX);
    assert_int_equal(look(second).answers, 1);
    client.at = 0;
    assert_int_equal(look(first).body, BIG_SIZE);
    end();
}

/* The stream whose answer is complete first. */
static uint32_t first_to_end(void)
{
    struct http2_frame frame;
    struct span payload;
    while (next_frame(&frame, &payload))
        if (frame.type == HTTP2_FRAME_DATA && frame.flags & HTTP2_FRAME_END_STREAM)
            return frame.stream;
    return 0;
}

/* RFC 9218 section 7.1. */
static void keeps_a_priority_that_comes_while_no_stream_is_open(void **state)
{
    (void)state;
    begin(LARGEST);
    for (uint32_t i = 0; i < 2; i++) {
        const char payload[] = { 0, 0, 0, (char)client.next_stream, 'u', '=', '7' };
        add_frame(HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, span_of(payload, sizeof(payload)));
        send_frames();
        receive(SIZE_MAX);
        assert_true(session_idle(&client.s));
        (void)add_get("/big.bin");
        const uint32_t urgent = add_get("/big.bin");
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(first_to_end(), urgent);
        (void)look(0);
        assert_null(client.s.http2->streams); /* it is kept no longer than it is needed */
    }
    end();
}

/* A table that an idle connection still has is taken back at its end. */
static void a_priority_without_a_stream_leaves_nothing(void **state)
{
    (void)state;
    begin(LARGEST);
    add_frame(HTTP2_FRAME_PRIORITY_UPDATE, 0, 0, SPAN("\0\0\0\1u=0"));
    send_frames();
    receive(SIZE_MAX);
    assert_non_null(client.s.http2->streams);
    end();
    assert_non_null(world.thread.http2_streams);
    assert_int_equal(world.thread.http2_streams->table.early_count, 0);
}

/* ---- windows ---- */

static void a_body_waits_for_the_window_of_its_stream(void **state)
{
    (void)state;
    begin(1000);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(stream);
    assert_int_equal(seen.status, 200);
    assert_int_equal(seen.body, 1000);
    assert_false(seen.ended);
    assert_int_equal(client.want, SESSION_READ);
    assert_false(session_idle(&client.s));
    assert_true(references_of("/middle.bin") > 1);

    http2_frame_add_window(&client.out, stream, MIDDLE_SIZE);
    send_frames();
    receive(SIZE_MAX);
    seen = look(stream);
    assert_int_equal(seen.body, MIDDLE_SIZE - 1000);
    assert_true(seen.ended);
    assert_true(session_idle(&client.s));
    assert_int_equal(references_of("/middle.bin"), 1);
    end();
}

static void an_error_page_waits_for_the_window_too(void **state)
{
    (void)state;
    begin(10);
    const uint32_t stream = add_get("/none");
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(stream);
    assert_int_equal(seen.status, 404);
    assert_int_equal(seen.body, 10);
    http2_frame_add_window(&client.out, stream, LARGEST / 2);
    send_frames();
    receive(SIZE_MAX);
    seen = look(stream);
    assert_true(seen.body > 100);
    assert_true(seen.ended);
    end();
}

static void a_multipart_answer_has_its_announced_length(void **state)
{
    (void)state;
    static const uint32_t windows[] = { LARGEST, 1000 };
    for (unsigned i = 0; i < 2; i++) {
        begin(windows[i]);
        const uint32_t stream = add_request("GET /big.bin HTTP/1.1\r\nHost: a\r\n"
                                            "Range: bytes=0-9999,20000-20009,-30000\r\n\r\n",
                                            true);
        size_t body = 0;
        bool ended = false;
        send_frames();
        while (!ended) {
            receive(SIZE_MAX);
            struct seen seen = look(stream);
            body += seen.body;
            ended = seen.ended;
            assert_true(ended || seen.body > 0);
            http2_frame_add_window(&client.out, stream, 4000);
            if (!ended)
                send_frames();
        }
        assert_true(body > 40010 && body < 40010 + 1000);
        client.out.len = 0;
        end();
    }
}

static void a_client_that_opens_no_window_is_cut_off(void **state)
{
    (void)state;
    begin(0);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(stream).body, 0);
    assert_int_equal(session_deadline_ns(&client.s), world.now_ns + 20 * SECOND);
    tick(20 * SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    struct seen seen = look(0);
    assert_true(seen.goaways == 1 && seen.error == HTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    assert_int_equal(references_of("/middle.bin"), 1);
    end();
}

static void a_client_that_opens_its_window_byte_by_byte_is_cut_off(void **state)
{
    (void)state;
    begin(0);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    unsigned goaways = 0;
    for (unsigned i = 0; i < 200 && goaways == 0; i++) {
        tick(SECOND);
        if (world.now_ns >= session_deadline_ns(&client.s)) {
            client.want = session_expire(&client.s, world.now_ns);
        } else {
            http2_frame_add_window(&client.out, stream, 1);
            send_frames();
        }
        receive(SIZE_MAX);
        goaways = look(0).goaways;
    }
    assert_int_equal(goaways, 1);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
}

static void a_stream_whose_window_stays_closed_is_reset(void **state)
{
    (void)state;
    begin(0);
    const uint32_t slow = add_get("/middle.bin"), good = add_get("/big.bin");
    send_frames();
    receive(SIZE_MAX);
    unsigned resets = 0;
    for (unsigned seconds = 0; seconds < 45 && resets == 0; seconds++) {
        tick(SECOND);
        if (world.now_ns >= session_deadline_ns(&client.s))
            client.want = session_expire(&client.s, world.now_ns);
        http2_frame_add_window(&client.out, good, SESSION_SEND_STEP);
        send_frames();
        receive(SIZE_MAX);
        struct seen seen = look(slow);
        resets = seen.resets;
        assert_int_equal(seen.goaways, 0);
        assert_true(resets == 0 || (seconds > 20 && seen.error == HTTP2_ENHANCE_YOUR_CALM));
    }
    assert_int_equal(resets, 1);
    assert_int_equal(references_of("/middle.bin"), 1);
    http2_frame_add_window(&client.out, good, BIG_SIZE);
    send_frames();
    receive(SIZE_MAX);
    assert_true(look(good).ended);
    end();
}

/* ---- resets ---- */

static void a_reset_releases_the_entry_of_its_answer(void **state)
{
    (void)state;
    static const char *const paths[] = { "/middle.bin", "/big.bin" };
    for (unsigned i = 0; i < 2; i++) {
        begin(100);
        const uint32_t stream = add_get(paths[i]);
        send_frames();
        receive(SIZE_MAX);
        assert_true(references_of(paths[i]) > 1);
        http2_frame_add_reset(&client.out, stream, HTTP2_CANCEL);
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(references_of(paths[i]), 1);
        assert_true(session_idle(&client.s));
        assert_int_equal(exchange("/none").status, 404);
        end();
    }
}

static void a_reset_while_the_output_waits_changes_nothing_else(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t first = add_get("/big.bin"), second = add_get("/middle.bin");
    send_frames();
    http2_frame_add_reset(&client.out, first, HTTP2_CANCEL);
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(references_of("/big.bin"), 1);
    assert_int_equal(look(second).body, MIDDLE_SIZE);
    client.at = 0;
    assert_true(look(first).body < BIG_SIZE);
    end();
}

static void a_close_during_answers_releases_everything(void **state)
{
    (void)state;
    begin(1000);
    (void)add_get("/big.bin");
    (void)add_get("/middle.bin");
    (void)add_get("/none");
    (void)add_request(HEAD_OF("POST", "/small.html"), false);
    send_frames();
    receive(5000);
    end();
    assert_int_equal(references_of("/big.bin"), 1);
    assert_int_equal(references_of("/middle.bin"), 1);
}

static void a_file_that_changes_while_it_is_sent_resets_its_stream(void **state)
{
    (void)state;
    begin(1000);
    const uint32_t stream = add_get("/big.bin");
    send_frames();
    receive(SIZE_MAX);
    write_file("big.bin", BIG_SIZE / 2, 'c');
    http2_frame_add_window(&client.out, stream, LARGEST / 2);
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(stream);
    assert_false(seen.ended);
    assert_true(seen.resets == 1 && seen.error == HTTP2_INTERNAL_ERROR);
    http2_frame_add_window(&client.out, 0, 1);
    assert_int_equal(exchange("/none").status, 404);
    end();
    write_file("big.bin", BIG_SIZE, 'b');
    settle("/big.bin");
}

/* ---- requests with a body ---- */

static void a_request_waits_for_the_end_of_its_body(void **state)
{
    (void)state;
    static char body[16 * 1024];
    begin(LARGEST);
    const uint32_t stream = add_request(HEAD_OF("GET", "/small.html"), false);
    for (unsigned i = 0; i < 3; i++)
        add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(body, sizeof(body)));
    send_in_steps(SESSION_READ_MAX);
    receive(SIZE_MAX);
    assert_int_equal(look(stream).status, 0);
    add_frame(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, stream, SPAN(""));
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(stream);
    assert_int_equal(seen.status, 200);
    assert_int_equal(seen.resets, 0);
    assert_true(session_idle(&client.s));
    end();
}

static void a_body_of_another_length_than_announced_resets_its_stream(void **state)
{
    (void)state;
    static const char *const bodies[] = { "123", "12345" };
    for (unsigned i = 0; i < 2; i++) {
        begin(LARGEST);
        const uint32_t stream =
            add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n", false);
        add_frame(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, stream, span_text(bodies[i]));
        send_frames();
        receive(SIZE_MAX);
        struct seen seen = look(stream);
        assert_int_equal(seen.status, 0);
        assert_true(seen.resets == 1 && seen.error == HTTP2_PROTOCOL_ERROR);
        assert_int_equal(exchange("/small.html").status, 200);
        end();
    }
}

static void a_request_whose_body_does_not_end_gets_408(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t stream = add_request(HEAD_OF("POST", "/small.html"), false);
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(session_deadline_ns(&client.s), world.now_ns + 30 * SECOND);
    tick(30 * SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(look(stream).status, 408);
    assert_int_equal(exchange("/small.html").status, 200);
    end();
}

static void a_body_slower_than_its_rate_gets_408(void **state)
{
    (void)state;
    world.shared.body_rate_bytes = 100;
    begin(LARGEST);
    const uint32_t stream = add_request(HEAD_OF("POST", "/small.html"), false);
    unsigned status = 0, seconds = 0;
    send_frames();
    for (; seconds < 29 && status == 0; seconds++) {
        tick(SECOND);
        if (world.now_ns >= session_deadline_ns(&client.s)) {
            client.want = session_expire(&client.s, world.now_ns);
        } else {
            add_frame(HTTP2_FRAME_DATA, 0, stream, SPAN("a few"));
            send_frames();
        }
        receive(SIZE_MAX);
        status = look(stream).status;
    }
    assert_int_equal(status, 408);
    assert_true(seconds >= 5);
    end();
    world.shared.body_rate_bytes = 0;
}

/* ---- the end of a connection ---- */

static void an_unfinished_frame_ends_the_connection_in_time(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    (void)add_get("/small.html");
    client.out.len -= 3;
    send_frames();
    assert_int_equal(session_deadline_ns(&client.s), world.now_ns + 10 * SECOND);
    tick(10 * SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_true(look(0).goaways > 0);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
}

/* Sends the rest of a PING, and the first byte of the next one. */
static void send_rest_and_beginning(void)
{
    add_frame(HTTP2_FRAME_PING, 0, 0, SPAN("12345678"));
    memmove(client.out.at, client.out.at + 1, client.out.len - 1);
    client.out.at[client.out.len - 1] = 0;
    send_frames();
    receive(SIZE_MAX);
}

static void frames_without_a_request_do_not_prolong_an_unfinished_one(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    client.out.len = 1;
    client.out.at[0] = 0;
    send_frames();
    const uint64_t due_ns = session_deadline_ns(&client.s);
    for (unsigned i = 0; i < 9; i++) {
        tick(SECOND);
        send_rest_and_beginning();
        assert_int_equal(session_deadline_ns(&client.s), due_ns);
    }
    tick(SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
}

static void a_request_gives_the_next_unfinished_frame_its_time(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    for (unsigned i = 0; i < 3; i++) {
        tick(9 * SECOND);
        (void)add_get("/small.html");
        const char next = 0;
        buf_add(&client.out, span_of(&next, 1));
        if (i > 0)
            memmove(client.out.at, client.out.at + 1, --client.out.len);
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(session_deadline_ns(&client.s), world.now_ns + 10 * SECOND);
    }
    end();
}

static void frames_without_a_request_do_not_end_the_idle_time(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    const uint64_t since_ns = world.now_ns;
    assert_int_equal(session_idle_since_ns(&client.s), since_ns);
    for (unsigned i = 0; i < 5; i++) {
        tick(SECOND);
        add_frame(HTTP2_FRAME_PING, 0, 0, SPAN("12345678"));
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(session_idle_since_ns(&client.s), since_ns);
    }
    (void)exchange("/small.html");
    assert_int_equal(session_idle_since_ns(&client.s), world.now_ns);
    end();
}

static void a_preface_that_never_ends_is_cut_off(void **state)
{
    (void)state;
    begin(LARGEST);
    client.out.len = 20;
    send_in_steps(1);
    assert_true(session_deadline_ns(&client.s) <= world.now_ns + 10 * SECOND);
    tick(10 * SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_false(client.want & SESSION_READ);
    end();
}

static void a_connection_that_cannot_be_served_gets_503(void **state)
{
    (void)state;
    begin(LARGEST);
    session_refuse(&client.s);
    struct seen seen = exchange("/small.html");
    assert_int_equal(seen.status, 503);
    assert_int_equal(seen.goaways, 1);
    end();
}

static void a_client_that_sends_no_more_gets_its_answers(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t stream = add_get("/big.bin");
    send_frames();
    receive(1000);
    client.want = session_feed(&client.s, SPAN(""), world.now_ns);
    assert_int_equal(client.want, SESSION_WRITE);
    receive(SIZE_MAX);
    assert_int_equal(look(stream).body, BIG_SIZE);
    assert_int_equal(client.want, SESSION_CLOSE);
    end();
}

static void a_fault_of_the_client_ends_the_connection_with_goaway(void **state)
{
    (void)state;
    begin(1000);
    (void)add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    add_frame(HTTP2_FRAME_DATA, 0, 0, SPAN("of no stream"));
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(0);
    assert_true(seen.goaways == 1 && seen.error == HTTP2_PROTOCOL_ERROR);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    assert_int_equal(references_of("/middle.bin"), 1);
    end();
}

static void a_scheme_of_another_protocol_gets_400(void **state)
{
    (void)state;
    char bytes[64];
    struct buf block = buf_over(bytes, sizeof(bytes));
    begin(LARGEST);
    http2_hpack_add_field(&block, SPAN(":method"), SPAN("GET"));
    http2_hpack_add_field(&block, SPAN(":scheme"), SPAN("ftp"));
    http2_hpack_add_field(&block, SPAN(":authority"), SPAN("a"));
    http2_hpack_add_field(&block, SPAN(":path"), SPAN("/small.html"));
    add_frame(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM, 1,
              buf_span(&block));
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(1).status, 400);
    end();
}

/* ---- idle connections ---- */

static void an_idle_connection_keeps_little_memory(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    assert_true(session_idle(&client.s));
    assert_null(client.s.input);
    assert_null(client.s.output);
    assert_null(client.s.http2->streams);
    assert_true(malloc_usable_size(client.s.http2) +
                    malloc_usable_size(client.s.http2->table.memory) + sizeof(client.s) <=
                1024);
    end();
}

static void a_connection_continues_in_another_thread(void **state)
{
    (void)state;
    char bytes[512];
    begin(LARGEST);
    for (unsigned i = 0; i < 4; i++) {
        struct buf block = buf_over(bytes, sizeof(bytes));
        (void)http2_client_add_request(&block, SPAN(HEAD_OF("GET", "/small.html")), SPAN("http"),
                                       i == 0 ? HTTP2_CLIENT_FIRST : HTTP2_CLIENT_LATER);
        add_frame(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM, 2 * i + 1,
                  buf_span(&block));
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(look(2 * i + 1).status, 200);
        assert_true(session_idle(&client.s));
        session_move(&client.s, i % 2 == 0 ? &world.other : &world.thread);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_a_request_that_follows_the_preface),
        cmocka_unit_test(every_split_of_the_input_gives_the_same_bytes),
        cmocka_unit_test(answers_of_one_read_leave_in_one_send),
        cmocka_unit_test(answers_as_many_streams_as_it_announces),
        cmocka_unit_test(answers_a_later_request_during_a_long_answer),
        cmocka_unit_test(keeps_a_priority_that_comes_while_no_stream_is_open),
        cmocka_unit_test(a_priority_without_a_stream_leaves_nothing),
        cmocka_unit_test(a_body_waits_for_the_window_of_its_stream),
        cmocka_unit_test(an_error_page_waits_for_the_window_too),
        cmocka_unit_test(a_multipart_answer_has_its_announced_length),
        cmocka_unit_test(a_client_that_opens_no_window_is_cut_off),
        cmocka_unit_test(a_client_that_opens_its_window_byte_by_byte_is_cut_off),
        cmocka_unit_test(a_stream_whose_window_stays_closed_is_reset),
        cmocka_unit_test(a_reset_releases_the_entry_of_its_answer),
        cmocka_unit_test(a_reset_while_the_output_waits_changes_nothing_else),
        cmocka_unit_test(a_close_during_answers_releases_everything),
        cmocka_unit_test(a_file_that_changes_while_it_is_sent_resets_its_stream),
        cmocka_unit_test(a_request_waits_for_the_end_of_its_body),
        cmocka_unit_test(a_body_of_another_length_than_announced_resets_its_stream),
        cmocka_unit_test(a_request_whose_body_does_not_end_gets_408),
        cmocka_unit_test(a_body_slower_than_its_rate_gets_408),
        cmocka_unit_test(an_unfinished_frame_ends_the_connection_in_time),
        cmocka_unit_test(frames_without_a_request_do_not_prolong_an_unfinished_one),
        cmocka_unit_test(a_request_gives_the_next_unfinished_frame_its_time),
        cmocka_unit_test(frames_without_a_request_do_not_end_the_idle_time),
        cmocka_unit_test(a_preface_that_never_ends_is_cut_off),
        cmocka_unit_test(a_connection_that_cannot_be_served_gets_503),
        cmocka_unit_test(a_client_that_sends_no_more_gets_its_answers),
        cmocka_unit_test(a_fault_of_the_client_ends_the_connection_with_goaway),
        cmocka_unit_test(a_scheme_of_another_protocol_gets_400),
        cmocka_unit_test(an_idle_connection_keeps_little_memory),
        cmocka_unit_test(a_connection_continues_in_another_thread),
    };
    return cmocka_run_group_tests(tests, make_http2_world, end_http2_world);
}
