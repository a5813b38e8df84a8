/* SPDX-License-Identifier: MIT
 *
 * The ends of HTTP/2: of a connection, with GOAWAY, and of a stream whose client still sends when
 * it has its answer.
 */
#include "framed.h"

static void expire_in(uint64_t later_ns)
{
    tick(later_ns);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
}

/* Lets time pass, in which the client sends nothing and the connection stays. */
static void pass(uint64_t time_ns)
{
    const uint64_t until_ns = world.now_ns + time_ns;
    while (session_deadline_ns(&client.s) < until_ns) {
        const uint64_t due_ns = session_deadline_ns(&client.s);
        expire_in(due_ns > world.now_ns ? due_ns - world.now_ns : 0);
        assert_true(client.want & SESSION_READ);
    }
    tick(until_ns - world.now_ns);
}

/* ---- connections ---- */

static void an_idle_connection_ends_with_goaway(void **state)
{
    (void)state;
    begin(LARGEST);
    (void)exchange("/small.html");
    assert_int_equal(session_deadline_ns(&client.s), world.now_ns + 60 * SECOND);
    tick(60 * SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    struct seen seen = look(0);
    assert_true(seen.goaways > 0);
    assert_int_equal(seen.error, HTTP2_NO_ERROR);
    assert_int_equal(seen.last_stream, 1);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
}

/* The client acknowledges the PING behind the first GOAWAY. */
static void a_drain_lets_the_client_finish(void **state)
{
    (void)state;
    begin(1000);
    const uint32_t first = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    atomic_store(&world.shared.draining, true);
    const uint32_t second = add_get("/small.html");
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(second);
    assert_true(seen.answers == 1 && seen.goaways == 1 && seen.pings == 1);
    assert_int_equal(seen.last_stream, LARGEST);

    const uint32_t third = add_get("/small.html"); /* it has crossed the GOAWAY */
    add_frame(HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, span_of(seen.ping, sizeof(seen.ping)));
    send_frames();
    receive(SIZE_MAX);
    seen = look(third);
    assert_int_equal(seen.answers, 1);
    assert_int_equal(seen.goaways, 1);
    assert_int_equal(seen.last_stream, third);
    assert_true(client.want & SESSION_READ);

    http2_frame_add_window(&client.out, first, MIDDLE_SIZE);
    send_frames();
    receive(SIZE_MAX);
    assert_true(look(first).ended);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
    atomic_store(&world.shared.draining, false);
}

static void a_drain_does_not_wait_for_a_client_that_is_silent(void **state)
{
    (void)state;
    atomic_store(&world.shared.draining, true);
    begin(LARGEST);
    assert_int_equal(exchange("/small.html").goaways, 1);
    assert_int_equal(client.want, SESSION_READ);
    assert_true(session_deadline_ns(&client.s) <= world.now_ns + SECOND);
    tick(SECOND);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(look(0).goaways, 1);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
    atomic_store(&world.shared.draining, false);
}

/* The model calls session_drain: no input arrives that could make the session notice the drain. */
static void a_drain_is_announced_to_an_idle_client(void **state)
{
    (void)state;
    begin(LARGEST);
    assert_int_equal(exchange("/small.html").answers, 1);
    assert_int_equal(client.want, SESSION_READ);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    assert_true(client.want & SESSION_WRITE);
    assert_int_equal(session_drain(&client.s, world.now_ns), 0);
    receive(SIZE_MAX);
    const struct seen seen = look(0);
    assert_true(seen.goaways == 1 && seen.pings == 1 && seen.last_stream == LARGEST);

    const uint32_t crossed = add_get("/small.html");
    add_frame(HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, span_of(seen.ping, sizeof(seen.ping)));
    send_frames();
    receive(SIZE_MAX);
    const struct seen last = look(crossed);
    assert_true(last.answers == 1 && last.goaways == 1 && last.last_stream == crossed);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    assert_int_equal(session_drain(&client.s, world.now_ns), 0);
    end();
    atomic_store(&world.shared.draining, false);
}

static void a_drain_waits_for_an_idle_client_as_long_as_in_http_1(void **state)
{
    (void)state;
    world.shared.drain_idle_ns = SECOND / 4;
    begin(LARGEST);
    assert_int_equal(exchange("/small.html").answers, 1);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(session_deadline_ns(&client.s), world.now_ns + SECOND / 4);
    tick(SECOND / 4);
    client.want = session_expire(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(look(0).goaways, 2);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
    atomic_store(&world.shared.draining, false);
    world.shared.drain_idle_ns = 0;
}

static void a_drain_is_announced_while_the_windows_are_closed(void **state)
{
    (void)state;
    begin(1000);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(stream).body, 1000);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    receive(SIZE_MAX);
    assert_int_equal(look(0).goaways, 1);
    http2_frame_add_window(&client.out, stream, MIDDLE_SIZE);
    send_frames();
    receive(SIZE_MAX);
    const struct seen seen = look(stream);
    assert_true(seen.ended && seen.body == MIDDLE_SIZE - 1000);
    end();
    atomic_store(&world.shared.draining, false);
}

/* A model calls it also while a part of the output is being sent. */
static void a_drain_during_a_send_follows_the_output(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(1000);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    receive(SIZE_MAX);
    const struct seen seen = look(stream);
    assert_true(seen.ended && seen.body == MIDDLE_SIZE && seen.goaways == 1);
    end();
    atomic_store(&world.shared.draining, false);
}

/* A small piece of an answer can spend the last of the budget, when the client sends nothing more
 * for which GOAWAY would be the answer. */
static void a_budget_that_ends_with_an_answer_ends_the_connection(void **state)
{
    (void)state;
    static const char ping[8] = "01234567";
    struct seen seen = { 0 };
    for (unsigned pings = 0; seen.goaways == 0; pings++) {
        begin(0);
        const uint32_t stream = add_get("/small.html");
        for (unsigned i = 0; i < pings; i++)
            add_frame(HTTP2_FRAME_PING, 0, 0, span_of(ping, sizeof(ping)));
        while (client.out.len > 0) {
            const size_t len = client.out.len < 4000 ? client.out.len : 4000;
            client.want = session_feed(&client.s, span_of(client.out.at, len), world.now_ns);
            client.out.len -= len;
            memmove(sending, sending + len, client.out.len);
            receive(SIZE_MAX);
        }
        assert_int_equal(look(0).goaways, 0);
        http2_frame_add_window(&client.out, stream, 10);
        send_frames();
        receive(SIZE_MAX);
        seen = look(0);
        assert_int_equal(seen.body, 10);
        if (seen.goaways == 0)
            end();
    }
    assert_int_equal(seen.error, HTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
}

/* It takes the answer slowly, and sends a WINDOW_UPDATE less often than header-timeout. */
static void an_announced_end_waits_for_a_slow_client(void **state)
{
    (void)state;
    begin(1000);
    const uint32_t stream = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    receive(SIZE_MAX);
    const struct seen seen = look(0);
    size_t body = seen.body;
    assert_int_equal(seen.goaways, 1);
    add_frame(HTTP2_FRAME_PING, HTTP2_FRAME_ACK, 0, span_of(seen.ping, sizeof(seen.ping)));
    send_frames();
    receive(SIZE_MAX);
    while (body < MIDDLE_SIZE) {
        http2_frame_add_window(&client.out, stream, 8000);
        send_frames();
        receive(SIZE_MAX);
        body += look(stream).body;
        if (body < MIDDLE_SIZE)
            pass(15 * SECOND); /* within send-timeout */
    }
    assert_int_equal(body, MIDDLE_SIZE);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
    atomic_store(&world.shared.draining, false);
}

/* They wait for space in the output, for longer than a head may take. The client returns what it
 * has read. */
static void requests_wait_behind_an_answer_that_is_read_slowly(void **state)
{
    enum { REQUESTS = 10 };
    (void)state;
    begin(2 * BIG_SIZE);
    const uint32_t big = add_get("/big.bin");
    send_frames();
    for (unsigned i = 0; i < REQUESTS; i++)
        (void)add_get("/small.html");
    send_frames();
    while (client.want & SESSION_WRITE) {
        receive(SESSION_SEND_STEP);
        http2_frame_add_window(&client.out, big, SESSION_SEND_STEP);
        send_frames();
        tick(15 * SECOND); /* within send-timeout */
        if (client.want & SESSION_WRITE && session_deadline_ns(&client.s) <= world.now_ns)
            client.want = session_expire(&client.s, world.now_ns);
    }
    const struct seen seen = look(0);
    assert_int_equal(seen.goaways, 0);
    assert_int_equal(seen.answers, REQUESTS + 1);
    end();
}

/* The client does not acknowledge it, also where its requests have filled the output. */
static void an_announced_end_comes_after_any_number_of_requests(void **state)
{
    (void)state;
    for (uint32_t count = 1; count < 20; count++) {
        world.shared.connection_requests = count;
        begin(LARGEST);
        unsigned answers = 0, goaways = 0;
        for (uint32_t i = 0; i < count; i++) {
            (void)add_get("/small.html");
            send_frames();
            tick(SECOND / 1000);
        }
        while (client.want & SESSION_WRITE) {
            receive(SIZE_MAX);
            const struct seen seen = look(0);
            answers += seen.answers;
            goaways += seen.goaways;
        }
        assert_true(answers == count && goaways == 1);
        assert_true(session_deadline_ns(&client.s) <= world.now_ns + SECOND);
        expire_in(SECOND);
        assert_int_equal(look(0).goaways, 1);
        assert_int_equal(client.want, SESSION_HALF_CLOSE);
        end();
    }
    world.shared.connection_requests = 0;
}

/* The client always sends the end of a frame with the beginning of the next one. */
static void an_announced_end_waits_for_no_frame(void **state)
{
    enum { FRAMES = 10, FRAME = HTTP2_FRAME_HEAD + 8, BEGINNING = 5 };
    (void)state;
    world.shared.connection_requests = 1;
    begin(LARGEST);
    assert_int_equal(exchange("/small.html").goaways, 1);
    const uint64_t due_ns = session_deadline_ns(&client.s);
    assert_true(due_ns <= world.now_ns + SECOND);
    for (unsigned i = 0; i < FRAMES; i++)
        add_frame(HTTP2_FRAME_PING, 0, 0, SPAN("01234567"));
    struct span rest = buf_span(&client.out);
    client.out.len = 0;
    for (size_t len = BEGINNING; world.now_ns < due_ns; len = FRAME) {
        client.want = session_feed(&client.s, span_first(rest, len), world.now_ns);
        receive(SIZE_MAX);
        assert_true(session_deadline_ns(&client.s) <= due_ns);
        rest = span_skip(rest, len);
        tick(SECOND / 8);
    }
    expire_in(0);
    assert_int_equal(look(0).goaways, 1);
    end();
    world.shared.connection_requests = 0;
}

/* The body of a large answer fills the output each time. */
static void a_drain_is_announced_before_the_rest_of_a_body(void **state)
{
    (void)state;
    struct http2_frame frame = { 0 };
    struct span payload;
    size_t body = 0;
    begin(LARGEST);
    (void)add_get("/big.bin");
    send_frames();
    receive(1000);
    atomic_store(&world.shared.draining, true);
    receive(SIZE_MAX);
    atomic_store(&world.shared.draining, false);
    while (frame.type != HTTP2_FRAME_GOAWAY && next_frame(&frame, &payload))
        body += frame.type == HTTP2_FRAME_DATA ? payload.len : 0;
    assert_int_equal(frame.type, HTTP2_FRAME_GOAWAY);
    assert_true(body < BIG_SIZE / 2);
    (void)look(0);
    end();
}

static void http_1_cannot_announce_a_drain(void **state)
{
    (void)state;
    struct session s;
    session_open(&s, &world.thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
    assert_false(session_announces_end(&s));
    assert_int_equal(session_drain(&s, world.now_ns), 0);
    session_close(&s);
}

static void the_last_request_of_a_connection_begins_its_end(void **state)
{
    (void)state;
    world.shared.connection_requests = 3;
    begin(LARGEST);
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal(exchange("/small.html").goaways, i == 3);
    end();
    world.shared.connection_requests = 0;
}

/* ---- requests that continue after their answer ---- */

static void a_body_above_the_limit_gets_413(void **state)
{
    (void)state;
    static char body[16 * 1024];
    begin(LARGEST);
    const uint32_t stream = add_request(HEAD_OF("POST", "/small.html"), false);
    for (size_t sent = 0; sent <= HTTP_BODY_MAX; sent += sizeof(body)) {
        add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(body, sizeof(body)));
        send_frames();
        receive(SIZE_MAX);
    }
    struct seen seen = look(stream);
    assert_int_equal(seen.status, 413);
    assert_true(seen.ended && seen.resets == 0);
    assert_int_equal(exchange("/small.html").status, 200);
    end();
}

/* More of them are late than the output has space for answers. */
static void let_bodies_be_late(void)
{
    enum { BODIES = 20 };
    begin(LARGEST);
    for (unsigned i = 0; i < BODIES; i++) {
        (void)add_request(HEAD_OF("POST", "/small.html"), false);
        send_frames();
        tick(SECOND / 1000);
    }
    receive(SIZE_MAX);
    (void)look(0);
    expire_in(31 * SECOND);
    unsigned answers = look(0).answers;
    while (answers < BODIES) {
        const uint64_t due_ns = session_deadline_ns(&client.s);
        assert_true(due_ns > world.now_ns && due_ns < world.now_ns + SECOND);
        expire_in(due_ns - world.now_ns);
        answers += look(0).answers;
    }
    assert_int_equal(answers, BODIES);
    end();
}

static void every_late_body_gets_its_answer(void **state)
{
    (void)state;
    let_bodies_be_late();
    world.shared.body_rate_bytes = 1000;
    let_bodies_be_late();
    world.shared.body_rate_bytes = 0;
}

/* The client takes an answer in small parts, and sends no byte of the body. */
static void an_answer_does_not_move_the_deadline_of_a_body(void **state)
{
    (void)state;
    enum { STEP = 4096 };
    begin(LARGEST);
    (void)add_request(HEAD_OF("POST", "/small.html"), false);
    (void)add_get("/big.bin");
    const uint64_t due_ns = world.now_ns + 30 * SECOND;
    for (send_frames(); world.now_ns + 4 * SECOND < due_ns; tick(4 * SECOND))
        receive(STEP);
    receive(STEP);
    assert_true(client.want & SESSION_WRITE);
    assert_true(session_deadline_ns(&client.s) <= due_ns);
    end();
}

/* The answer waits for the windows, and the client sends without end. */
static void a_body_during_its_answer_is_bounded(void **state)
{
    (void)state;
    enum { PART = 16 * 1024 };
    static char part[PART];
    begin(0);
    const uint32_t stream =
        add_request("GET /big.bin HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", false);
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(stream).status, 200);
    for (size_t sent = 0; sent < HTTP_BODY_MAX; sent += PART) {
        add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(part, PART));
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(look(stream).resets, 0);
    }
    add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(part, 1));
    send_frames();
    receive(SIZE_MAX);
    const struct seen seen = look(stream);
    assert_true(seen.resets == 1 && seen.error == HTTP2_CANCEL);
    assert_int_equal(exchange("/empty").status, 404);
    end();
}

/* curl 7.88 shows no answer when a reset is directly behind it. */
static void a_reset_follows_an_early_answer_later(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t stream =
        add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", false);
    send_frames();
    receive(SIZE_MAX);
    struct seen seen = look(stream);
    assert_true(seen.status == 413 && seen.ended && seen.resets == 0);
    assert_false(session_idle(&client.s));
    expire_in(SECOND);
    assert_int_equal(look(stream).resets, 0);
    assert_true(session_deadline_ns(&client.s) <= world.now_ns + SECOND);
    expire_in(SECOND);
    seen = look(stream);
    assert_true(seen.resets == 1 && seen.error == HTTP2_NO_ERROR);
    assert_true(session_idle(&client.s));
    end();
}

static void a_request_that_ends_after_its_answer_gets_no_reset(void **state)
{
    (void)state;
    begin(LARGEST);
    const uint32_t stream =
        add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", false);
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(stream).status, 413);
    add_frame(HTTP2_FRAME_DATA, 0, stream, SPAN("crossed"));
    http2_frame_add_window(&client.out, stream, 100);
    add_frame(HTTP2_FRAME_DATA, HTTP2_FRAME_END_STREAM, stream, SPAN("the answer"));
    send_frames();
    receive(SIZE_MAX);
    const struct seen seen = look(0);
    assert_true(seen.resets == 0 && seen.goaways == 0);
    assert_true(session_idle(&client.s));
    assert_int_equal(exchange("/small.html").status, 200);
    end();
}

static void a_request_that_continues_after_its_answer_is_bounded(void **state)
{
    (void)state;
    enum { PART = 16 * 1024 };
    static char part[PART];
    begin(LARGEST);
    const uint32_t stream =
        add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", false);
    for (size_t sent = 0; sent < HTTP_BODY_MAX; sent += PART) {
        add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(part, PART));
        send_frames();
        receive(SIZE_MAX);
    }
    assert_int_equal(look(stream).resets, 0);
    add_frame(HTTP2_FRAME_DATA, 0, stream, span_of(part, 1));
    send_frames();
    receive(SIZE_MAX);
    const struct seen seen = look(stream);
    assert_true(seen.resets == 1 && seen.error == HTTP2_NO_ERROR);
    end();
}

/* Go's client resets the stream when it has an answer and no longer sends. */
static void a_client_that_resets_what_is_answered_stays(void **state)
{
    (void)state;
    begin(LARGEST);
    for (unsigned i = 0; i < 2 * HTTP2_RESETS_MAX; i++) {
        const uint32_t stream =
            add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", false);
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(look(stream).status, 413);
        add_frame(HTTP2_FRAME_RST_STREAM, 0, stream, span_of("\0\0\0\10", 4));
        send_frames();
        receive(SIZE_MAX);
        assert_int_equal(look(0).goaways, 0);
    }
    assert_int_equal(exchange("/small.html").status, 200);
    assert_true(session_idle(&client.s));
    end();
}

static void a_lingering_stream_ends_with_its_connection(void **state)
{
    (void)state;
    begin(LARGEST);
    for (unsigned i = 0; i < 3; i++)
        (void)add_request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n", false);
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(look(0).answers, 3);
    atomic_store(&world.shared.draining, true);
    client.want = session_drain(&client.s, world.now_ns);
    receive(SIZE_MAX);
    expire_in(SECOND);
    assert_int_equal(client.want, SESSION_READ);
    expire_in(SECOND);
    const struct seen seen = look(0);
    assert_true(seen.resets == 3 && seen.goaways == 2);
    assert_int_equal(client.want, SESSION_HALF_CLOSE);
    end();
    atomic_store(&world.shared.draining, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_connection_ends_with_goaway),
        cmocka_unit_test(a_drain_lets_the_client_finish),
        cmocka_unit_test(a_drain_does_not_wait_for_a_client_that_is_silent),
        cmocka_unit_test(a_drain_is_announced_to_an_idle_client),
        cmocka_unit_test(a_drain_waits_for_an_idle_client_as_long_as_in_http_1),
        cmocka_unit_test(a_drain_is_announced_while_the_windows_are_closed),
        cmocka_unit_test(a_drain_during_a_send_follows_the_output),
        cmocka_unit_test(a_budget_that_ends_with_an_answer_ends_the_connection),
        cmocka_unit_test(an_announced_end_waits_for_a_slow_client),
        cmocka_unit_test(requests_wait_behind_an_answer_that_is_read_slowly),
        cmocka_unit_test(an_announced_end_comes_after_any_number_of_requests),
        cmocka_unit_test(an_announced_end_waits_for_no_frame),
        cmocka_unit_test(a_drain_is_announced_before_the_rest_of_a_body),
        cmocka_unit_test(http_1_cannot_announce_a_drain),
        cmocka_unit_test(the_last_request_of_a_connection_begins_its_end),
        cmocka_unit_test(a_body_above_the_limit_gets_413),
        cmocka_unit_test(every_late_body_gets_its_answer),
        cmocka_unit_test(an_answer_does_not_move_the_deadline_of_a_body),
        cmocka_unit_test(a_body_during_its_answer_is_bounded),
        cmocka_unit_test(a_reset_follows_an_early_answer_later),
        cmocka_unit_test(a_request_that_ends_after_its_answer_gets_no_reset),
        cmocka_unit_test(a_request_that_continues_after_its_answer_is_bounded),
        cmocka_unit_test(a_client_that_resets_what_is_answered_stays),
        cmocka_unit_test(a_lingering_stream_ends_with_its_connection),
    };
    return cmocka_run_group_tests(tests, make_http2_world, end_http2_world);
}
