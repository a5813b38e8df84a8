/* SPDX-License-Identifier: MIT
 *
 * A session, driven as a model drives it, with a clock of the test's own. It tests what
 * conformance cases cannot: buffers, deadlines, short writes, and files that change while they
 * are sent.
 */
#include "session/session.h"

#include "session/limits.h"
#include "world.h"

#define LIST "GET / HTTP/1.1\r\nHost: list.test\r\n\r\n"

enum { LISTED = 200 };

static char listed_root[80]; /* of the site list.test */

static void name_listed(char name[32], unsigned number)
{
    (void)snprintf(name, 32, "listed/%03u.txt", number);
}

static int make_session_world(void **state)
{
    (void)state;
    static const char *const hosts[] = { "list.test", NULL }, *const index[] = { NULL };
    static const struct site_options options = {
        .name = "list", .root = listed_root, .index = index, .listing = true
    };
    if (make_world() < 0)
        return -1;
    (void)snprintf(listed_root, sizeof(listed_root), "%s/listed", world.root);
    if (mkdir(listed_root, 0755) < 0)
        return -1;
    for (unsigned i = 0; i < LISTED; i++) {
        char name[32];
        name_listed(name, i);
        write_file(name, 1, 'l');
    }
    const char *what;
    world.sites[1].hosts = hosts;
    if (site_open(&world.sites[1].site, &options, world.mime, &what) < 0)
        return -1;
    world.shared.site_count = 2;
    world.shared.server_field = SPAN("Server: weir\r\n");
    return start_world();
}

static int end_session_world(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LISTED; i++) {
        char name[32];
        name_listed(name, i);
        remove_file(name);
    }
    if (rmdir(listed_root) < 0)
        return -1;
    struct site *listed = world.sites[1].site;
    int rc = end_world();
    site_close(listed);
    return rc;
}

/* Copies one output, memory and file, at most `most` bytes of it, to `to`. */
static size_t copy_output(const struct session_out *out, char *to, size_t most)
{
    size_t len = 0;
    for (unsigned i = 0; i < out->count; i++) {
        size_t part = out->piece[i].len < most - len ? out->piece[i].len : most - len;
        if (part > 0)
            memcpy(to + len, out->piece[i].at, part);
        len += part;
    }
    if (len < most && out->file_len > 0) {
        size_t part = out->file_len < most - len ? (size_t)out->file_len : most - len;
        ssize_t got = pread(out->file_fd, to + len, part, (off_t)out->file_offset);
        len += got > 0 ? (size_t)got : 0;
    }
    return len;
}

/* Sends everything, at most `step` bytes at a time, into `to`. */
static unsigned send_all(struct session *s, char *to, size_t step, size_t *ret_len)
{
    unsigned want = SESSION_WRITE;
    size_t len = 0;
    while (want & SESSION_WRITE) {
        struct session_out out = session_output(s);
        size_t sent = copy_output(&out, to + len, step);
        assert_true(sent > 0);
        len += sent;
        want = session_sent(s, sent, world.now_ns);
    }
    *ret_len = len;
    return want;
}

static size_t count_of(const char *text, size_t len, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = memmem(at, len - (size_t)(at - text), what, strlen(what)));)
        at += strlen(what), count++;
    return count;
}

static char bytes[4 * 1024 * 1024];

static void answers_of_one_read_leave_in_one_send(void **state)
{
    (void)state;
    struct session s = open_session();
    char requests[16 * sizeof(GET("/small.html"))] = "";
    for (int i = 0; i < 16; i++)
        strcat(requests, GET("/small.html"));
    assert_int_equal(feed(&s, requests), SESSION_WRITE);
    struct session_out out = session_output(&s);
    assert_int_equal(count_of(out.piece[0].at, out.piece[0].len, "HTTP/1.1 200 OK\r\n"), 16);
    assert_int_equal(out.count, 1);
    assert_int_equal(session_sent(&s, out.piece[0].len, world.now_ns), SESSION_READ);
    session_close(&s);
}

static void an_idle_connection_holds_no_buffer(void **state)
{
    (void)state;
    struct session s = open_session();
    size_t len;
    assert_null(s.input);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_true(session_idle(&s));
    assert_null(s.input);
    assert_null(s.output);
    assert_null(s.body);
    assert_true(sizeof(s) <= 128);
    session_close(&s);
}

static void answers_more_requests_than_the_buffer_holds(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    struct session s = open_session();
    size_t answers = 0;
    size_t asked = 0;
    char requests[SESSION_READ_MAX];
    size_t unit = strlen(GET("/small.html"));
    while (asked < COUNT) {
        size_t fits = session_room(&s) / unit;
        size_t batch = COUNT - asked < fits ? COUNT - asked : fits;
        for (size_t i = 0; i < batch; i++)
            memcpy(requests + i * unit, GET("/small.html"), unit);
        asked += batch;
        size_t len;
        assert_int_equal(session_feed(&s, span_of(requests, batch * unit), world.now_ns),
                         SESSION_WRITE);
        assert_int_equal(session_room(&s), 0);
        assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
        answers += count_of(bytes, len, "HTTP/1.1 200 OK\r\n");
    }
    assert_int_equal(answers, COUNT);
    session_close(&s);
}

/* For every size of file and of write, the bytes are the same. */
static void short_writes_give_the_same_bytes(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET("/small.html"),
        GET("/middle.bin"),
        GET("/big.bin"),
        GET("/small.html") GET("/big.bin") GET("/small.html"),
        "GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-20000,50000-50009,-30000\r\n\r\n",
        "GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-9,-100\r\n\r\n",
    };
    static const size_t steps[] = { 1024, 4097, 65536, 17 };
    static char whole[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct session s = open_session();
        size_t whole_len;
        assert_int_equal(feed(&s, requests[i]), SESSION_WRITE);
        assert_int_equal(send_all(&s, whole, sizeof(whole), &whole_len), SESSION_READ);
        session_close(&s);
        if (strstr(requests[i], "Range"))
            continue; /* a multipart boundary differs from answer to answer */
        for (size_t step = 0; step < sizeof(steps) / sizeof(steps[0]); step++) {
            struct session t = open_session();
            size_t len;
            assert_int_equal(feed(&t, requests[i]), SESSION_WRITE);
            assert_int_equal(send_all(&t, bytes, steps[step], &len), SESSION_READ);
            assert_int_equal(len, whole_len);
            assert_memory_equal(bytes, whole, len);
            session_close(&t);
        }
    }
}

static size_t announced_length(const char *answer, size_t len, size_t *ret_body)
{
    const char *field = memmem(answer, len, "Content-Length: ", 16);
    const char *end = memmem(answer, len, "\r\n\r\n", 4);
    assert_non_null(field);
    assert_non_null(end);
    *ret_body = len - (size_t)(end + 4 - answer);
    return (size_t)strtoul(field + 16, NULL, 10);
}

static void multipart_lengths_are_exact(void **state)
{
    (void)state;
    static const size_t steps[] = { sizeof(bytes), 999 };
    for (size_t i = 0; i < 2; i++) {
        struct session s = open_session();
        assert_int_equal(feed(&s, "GET /big.bin HTTP/1.1\r\nHost: a\r\n"
                                  "Range: bytes=0-20000,50000-50009,-30000\r\n\r\n"),
                         SESSION_WRITE);
        size_t len;
        size_t body;
        assert_int_equal(send_all(&s, bytes, steps[i], &len), SESSION_READ);
        size_t announced = announced_length(bytes, len, &body);
        assert_int_equal(announced, body);
        assert_int_equal(count_of(bytes, len, "\r\nContent-Range: bytes "), 3);
        session_close(&s);
    }
}

static void short_parts_leave_in_one_send(void **state)
{
    (void)state;
    struct session s = open_session();
    char request[512] = "GET /middle.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0";
    for (unsigned i = 1; i < 16; i++)
        snprintf(request + strlen(request), sizeof(request) - strlen(request), ",%u-%u", i * 1000,
                 i * 1000 + 1);
    strcat(request, "\r\n\r\n");
    assert_int_equal(feed(&s, request), SESSION_WRITE);
    struct session_out head = session_output(&s);
    assert_int_equal(session_sent(&s, head.piece[0].len, world.now_ns), SESSION_WRITE);
    struct session_out parts = session_output(&s);
    assert_int_equal(count_of(parts.piece[0].at, parts.piece[0].len, "Content-Range: bytes "), 16);
    assert_int_equal(session_sent(&s, parts.piece[0].len, world.now_ns), SESSION_READ);
    session_close(&s);
}

static void a_held_answer_survives_a_tick_and_an_eviction(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/middle.bin")), SESSION_WRITE);
    struct session_out out = session_output(&s);
    size_t head = out.piece[0].len;
    assert_int_equal(session_sent(&s, head + 10, world.now_ns), SESSION_WRITE);

    write_file("middle.bin", MIDDLE_SIZE, 'n');
    tick(2 * SECOND);
    struct session t = open_session();
    size_t len;
    assert_int_equal(feed(&t, GET("/middle.bin")), SESSION_WRITE);
    assert_int_equal(send_all(&t, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_true(bytes[len - 1] == 'n');
    session_close(&t);
    for (int i = 0; i < 10; i++)
        tick(SECOND);

    assert_int_equal(send_all(&s, bytes, 1000, &len), SESSION_READ);
    assert_int_equal(len, MIDDLE_SIZE - 10);
    assert_int_equal(count_of(bytes, len, "n"), 0);
    session_close(&s);
    write_file("middle.bin", MIDDLE_SIZE, 'm');
    tick(2 * SECOND);
}

static void a_file_rewritten_while_it_is_sent_is_never_completed(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/big.bin")), SESSION_WRITE);
    struct session_out out = session_output(&s);
    assert_true(out.file_fd >= 0);
    assert_true(out.file_len < BIG_SIZE);
    assert_int_equal(session_sent(&s, out.piece[0].len + 1000, world.now_ns), SESSION_WRITE);
    usleep(20000); /* so that the two versions have different times */
    write_file("big.bin", BIG_SIZE, 'c');
    out = session_output(&s);
    assert_int_equal(session_sent(&s, (size_t)out.file_len, world.now_ns), SESSION_CLOSE);
    session_close(&s);
    write_file("big.bin", BIG_SIZE, 'b');
    tick(2 * SECOND);
}

static void a_file_cut_short_ends_the_connection(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/big.bin")), SESSION_WRITE);
    struct session_out out = session_output(&s);
    assert_int_equal(session_sent(&s, out.piece[0].len, world.now_ns), SESSION_WRITE);
    assert_int_equal(session_cut(&s), SESSION_CLOSE);
    session_close(&s);
}

static void a_slow_head_gets_408_at_an_absolute_deadline(void **state)
{
    (void)state;
    struct session s = open_session();
    tick(5 * SECOND);
    assert_int_equal(feed(&s, "GET / HT"), SESSION_READ);
    uint64_t deadline = session_deadline_ns(&s);
    assert_true(deadline == world.now_ns + 10 * SECOND);
    tick(9 * SECOND);
    assert_int_equal(feed(&s, "TP"), SESSION_READ);
    assert_true(session_deadline_ns(&s) == deadline);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_READ);
    tick(SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_WRITE);
    size_t len;
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    assert_memory_equal(bytes, "HTTP/1.1 408 ", 13);
    assert_int_equal(count_of(bytes, len, "Connection: close\r\n"), 1);
    assert_int_equal(feed(&s, "still talking"), SESSION_READ);
    assert_int_equal(feed(&s, ""), SESSION_CLOSE);
    session_close(&s);
}

static void an_idle_connection_closes_without_an_answer(void **state)
{
    (void)state;
    struct session s = open_session();
    tick(10 * SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_CLOSE);
    session_close(&s);
}

static void a_client_that_reads_too_slowly_is_cut_off(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/middle.bin")), SESSION_WRITE);
    for (int i = 0; i < 19; i++) {
        tick(SECOND);
        assert_int_equal(session_sent(&s, 1, world.now_ns), SESSION_WRITE);
    }
    tick(2 * SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_CLOSE);
    session_close(&s);
}

static void a_client_that_stays_below_the_least_rate_is_cut_off(void **state)
{
    (void)state;
    world.shared.send_step_bytes = 20 * 1000; /* in the 20 s of the send timeout */
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/big.bin")), SESSION_WRITE);
    for (int i = 0; i < 19; i++) {
        tick(SECOND);
        assert_int_equal(session_sent(&s, i < 9 ? 1100 : 900, world.now_ns), SESSION_WRITE);
    }
    tick(SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_CLOSE);
    session_close(&s);
    world.shared.send_step_bytes = SESSION_SEND_STEP;
}

static void a_body_must_arrive_at_the_least_rate(void **state)
{
    (void)state;
    world.shared.body_rate_bytes = 10;
    struct session s = open_session();
    size_t len;
    assert_int_equal(feed(&s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"),
                     SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    for (int i = 0; i < 10; i++) {
        tick(2 * SECOND);
        assert_int_equal(session_expire(&s, world.now_ns), SESSION_READ);
        assert_int_equal(feed(&s, "a body of twenty B.."), SESSION_READ);
    }
    tick(4 * SECOND);
    assert_int_equal(feed(&s, "too few"), SESSION_READ);
    tick(2 * SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_CLOSE);
    session_close(&s);
    world.shared.body_rate_bytes = 0;
}

static void the_rate_does_not_lengthen_the_time_of_a_body(void **state)
{
    (void)state;
    world.shared.body_rate_bytes = 1;
    struct session s = open_session();
    size_t len;
    assert_int_equal(feed(&s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"),
                     SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    for (int i = 0; i < 7; i++) {
        tick(4 * SECOND);
        assert_int_equal(feed(&s, "enough"), SESSION_READ);
    }
    tick(2 * SECOND);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_CLOSE);
    session_close(&s);
    world.shared.body_rate_bytes = 0;
}

static void a_connection_retires_after_its_last_request(void **state)
{
    (void)state;
    world.shared.connection_requests = 3;
    struct session s = open_session();
    size_t len;
    assert_int_equal(feed(&s, GET("/small.html") GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_int_equal(count_of(bytes, len, "Connection: close\r\n"), 0);
    assert_int_equal(feed(&s, GET("/small.html") GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    assert_int_equal(count_of(bytes, len, "HTTP/1.1 200 "), 1);
    assert_int_equal(count_of(bytes, len, "Connection: close\r\n"), 1);
    session_close(&s);
    world.shared.connection_requests = 0;
}

static void a_connection_retires_after_its_time(void **state)
{
    (void)state;
    world.shared.connection_time_ns = 100 * SECOND;
    struct session s = open_session();
    size_t len;
    tick(50 * SECOND);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_int_equal(session_deadline_ns(&s), world.now_ns + 50 * SECOND);
    assert_int_equal(session_idle_since_ns(&s), world.now_ns);
    tick(50 * SECOND);
    struct session idle = s;
    assert_int_equal(session_expire(&idle, world.now_ns), SESSION_CLOSE);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    assert_int_equal(count_of(bytes, len, "Connection: close\r\n"), 1);
    session_close(&s);
    world.shared.connection_time_ns = 0;
}

static void an_address_that_sends_too_much_gets_429(void **state)
{
    (void)state;
    struct session_limits limits = {
        .memory = calloc(1, session_limits_bytes(1)),
        .workers = 1,
        .request_interval_ns = 5 * SECOND, /* so 2 at once */
    };
    assert_non_null(limits.memory);
    world.shared.limits = &limits;
    struct session_peer peer = { .family = 4, .address = { 192, 0, 2, 1 } };
    assert_true(session_limits_admit(&limits, &peer, world.now_ns));
    struct session s;
    session_open(&s, &world.thread, (struct session_origin){ .peer = peer }, world.now_ns);
    size_t len;
    assert_int_equal(feed(&s, GET("/small.html") GET("/small.html") GET("/small.html")),
                     SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_int_equal(count_of(bytes, len, "HTTP/1.1 200 "), 2);
    assert_int_equal(count_of(bytes, len, "HTTP/1.1 429 "), 1);
    assert_int_equal(count_of(bytes, len, "Retry-After: 1\r\n"), 1);
    tick(5 * SECOND);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_int_equal(count_of(bytes, len, "HTTP/1.1 200 "), 1);
    session_close(&s);
    for (unsigned i = 0; i < SESSION_LIMITS_PLACES; i++)
        assert_int_equal(limits.memory->open[0].at[0][i], 0);
    world.shared.limits = NULL;
    free(limits.memory);
}

static void a_client_that_makes_progress_is_not_cut_off(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, GET("/middle.bin")), SESSION_WRITE);
    for (int i = 0; i < 8; i++) {
        tick(15 * SECOND);
        assert_int_equal(session_sent(&s, 4096, world.now_ns), SESSION_WRITE);
        assert_true(session_deadline_ns(&s) > world.now_ns);
    }
    session_close(&s);
}

static void a_drain_closes_after_the_answer(void **state)
{
    (void)state;
    struct session s = open_session();
    atomic_store(&world.shared.draining, true);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WRITE);
    size_t len;
    assert_false(session_output(&s).last);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    assert_int_equal(count_of(bytes, len, "Connection: close\r\n"), 1);
    atomic_store(&world.shared.draining, false);
    session_close(&s);
}

/* `last` lets a model delay a send until the close. No other output may be delayed. */
static void only_the_final_output_of_a_closing_connection_is_last(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool last;
    } cases[] = {
        { GET("/small.html"), false },
        { "GET /small.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true },
        { "GET /small.html HTTP/1.0\r\n\r\n", true },
        { "GET /middle.bin HTTP/1.0\r\n\r\n", true },
        { "GET /big.bin HTTP/1.0\r\n\r\n", false },
        { "GET /small.html HTTP/1.0\r\n\r\nmore", false },
        { "GET /\x01 HTTP/1.0\r\n\r\n", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct session s = open_session();
        assert_int_equal(feed(&s, cases[i].request), SESSION_WRITE);
        assert_int_equal(session_output(&s).last, cases[i].last);
        session_close(&s);
    }
}

static void discards_a_bounded_number_of_bytes_after_the_last_answer(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(feed(&s, "BAD\x01\r\n"), SESSION_WRITE);
    size_t len;
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    static char junk[SESSION_READ_MAX];
    unsigned want = SESSION_READ;
    size_t fed = 0;
    while (want == SESSION_READ && fed < sizeof(bytes) * 2) {
        fed += sizeof(junk);
        want = session_feed(&s, span_of(junk, sizeof(junk)), world.now_ns);
    }
    assert_int_equal(want, SESSION_CLOSE);
    assert_true(fed < sizeof(bytes));
    session_close(&s);
}

static void discards_a_body_and_finds_the_next_request(void **state)
{
    (void)state;
    struct session s = open_session();
    size_t len;
    assert_int_equal(
        feed(&s, "POST /small.html HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n123"),
        SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_memory_equal(bytes, "HTTP/1.1 405 ", 13);
    assert_false(session_idle(&s));
    assert_int_equal(feed(&s, "4567890" GET("/small.html")), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_memory_equal(bytes, "HTTP/1.1 200 ", 13);
    assert_null(s.body);
    session_close(&s);
}

static void a_request_waits_for_its_chunks_within_the_time_of_a_body(void **state)
{
    (void)state;
    struct session s = open_session();
    size_t len;
    assert_int_equal(feed(&s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"),
                     SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    tick(20 * SECOND);
    assert_int_equal(feed(&s, "ab"
                              "GET /small.html HTTP/1.1\r\nHost: a\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n1\r\n"),
                     SESSION_READ);
    assert_int_equal(session_deadline_ns(&s), world.now_ns + 30 * SECOND);
    assert_null(s.output);
    assert_null(s.input);
    tick(20 * SECOND);
    assert_int_equal(feed(&s, "a\r\n0\r\n\r\n"), SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_memory_equal(bytes, "HTTP/1.1 200 ", 13);
    assert_true(session_idle(&s));
    session_close(&s);
}

static void a_connection_that_is_refused_does_not_wait_for_chunks(void **state)
{
    (void)state;
    struct session s = open_session();
    size_t len;
    session_refuse(&s);
    assert_int_equal(feed(&s, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
                     SESSION_WRITE);
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_HALF_CLOSE);
    assert_memory_equal(bytes, "HTTP/1.1 503 ", 13);
    session_close(&s);
}

static void a_connection_that_ends_within_its_chunks_leaves_nothing(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(
        feed(&s, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"),
        SESSION_READ);
    assert_int_equal(feed(&s, ""), SESSION_CLOSE);
    session_close(&s);
    assert_null(s.body);
}

/* ---- listings ---- */

static void expect_status(struct session *s, const char *request, const char *status)
{
    size_t len;
    assert_int_equal(feed(s, request), SESSION_WRITE);
    assert_int_equal(send_all(s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_memory_equal(bytes, status, strlen(status));
}

static void a_head_request_for_a_listing_renders_nothing(void **state)
{
    (void)state;
    struct session s = open_session();
    const uint64_t inserted = site_cache_totals(world.shared.cache).inserted;
    expect_status(&s, "HEAD / HTTP/1.1\r\nHost: list.test\r\n\r\n", "HTTP/1.1 200 ");
    assert_int_equal(site_cache_totals(world.shared.cache).inserted, inserted);
    expect_status(&s, LIST, "HTTP/1.1 200 ");
    assert_int_equal(site_cache_totals(world.shared.cache).inserted, inserted + 1);
    expect_status(&s, LIST, "HTTP/1.1 200 ");
    assert_int_equal(site_cache_totals(world.shared.cache).inserted, inserted + 1);
    session_close(&s);
}

static void a_listing_outside_of_the_cache_counts_until_it_is_sent(void **state)
{
    (void)state;
    struct site_cache *whole = world.shared.cache;
    struct session_thread *thread = &world.thread;
    struct site_cache_reader *reader = thread->reader;
    const struct site_cache_limits none = { SITE_CACHE_SIEVE, 0, 0, 0 };
    world.shared.cache = site_cache_new(none, 1);
    thread->reader = site_cache_reader(world.shared.cache, 0);
    world.shared.listings.max = 1;

    struct session s = open_session();
    struct session t = open_session();
    assert_int_equal(feed(&s, LIST), SESSION_WRITE);
    assert_int_equal(world.shared.listings.count, 1);
    struct session_out out = session_output(&s);
    assert_true(out.piece[1].len > 1000);
    assert_int_equal(session_sent(&s, out.piece[0].len, world.now_ns), SESSION_WRITE);
    expect_status(&t, LIST, "HTTP/1.1 503 ");
    assert_non_null(memmem(bytes, 400, "\r\nRetry-After: 1\r\n", 18));
    expect_status(&t, GET("/small.html"), "HTTP/1.1 200 ");
    size_t len;
    assert_int_equal(send_all(&s, bytes, sizeof(bytes), &len), SESSION_READ);
    assert_int_equal(world.shared.listings.count, 0);
    expect_status(&t, LIST, "HTTP/1.1 200 ");

    assert_int_equal(feed(&s, LIST), SESSION_WRITE);
    session_close(&s); /* the client has left */
    assert_int_equal(world.shared.listings.count, 0);
    session_close(&t);

    site_cache_offline(thread->reader);
    site_cache_free(world.shared.cache);
    world.shared.cache = whole;
    thread->reader = reader;
    world.shared.listings.max = 0;
}

static void a_cached_listing_is_not_limited(void **state)
{
    (void)state;
    struct session s = open_session();
    expect_status(&s, LIST, "HTTP/1.1 200 ");
    world.shared.listings.max = 1;
    world.shared.listings.count = 1; /* another thread renders one */
    expect_status(&s, LIST, "HTTP/1.1 200 ");
    expect_status(&s, "GET /?sort=size HTTP/1.1\r\nHost: list.test\r\n\r\n", "HTTP/1.1 503 ");
    world.shared.listings.count = 0;
    world.shared.listings.max = 0;
    session_close(&s);
}

/* What the session answers to one request, up to the end of its head. */
static const char *head_of_answer(const char *request)
{
    static char head[4096];
    struct session s;
    session_open(&s, &world.thread, (struct session_origin){ 0 }, world.now_ns);
    assert_int_equal(session_feed(&s, span_text(request), world.now_ns), SESSION_WRITE);
    struct span first = session_output(&s).piece[0];
    size_t len = first.len < sizeof(head) ? first.len : sizeof(head) - 1;
    memcpy(head, first.at, len);
    head[len] = '\0';
    session_close(&s);
    return head;
}

static void assert_redirected(const char *request, const char *location)
{
    const char *head = head_of_answer(request);
    char line[512];
    (void)snprintf(line, sizeof(line), "\r\nLocation: %s\r\n", location);
    if (strncmp(head, "HTTP/1.1 308 ", 13) != 0 || !strstr(head, line))
        fail_msg("%s gives %s and not %s", request, head, location);
}

static void redirects_plain_requests_to_https(void **state)
{
    (void)state;
    world.sites[0].https_port = 443;
    assert_redirected("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "https://a.test/");
    assert_redirected("GET /x/%20y?q=%2F HTTP/1.1\r\nHost: a.test:8080\r\n\r\n",
                      "https://a.test/x/%20y?q=%2F");
    assert_redirected("GET //evil.test/a/../b HTTP/1.1\r\nHost: A.test\r\n\r\n",
                      "https://A.test/evil.test/b");
    assert_redirected("GET /x HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "https://[::1]/x");
    assert_redirected("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", "https://a/x");
    world.sites[0].https_port = 8443;
    assert_redirected(GET("/small.html"), "https://a:8443/small.html");
    world.sites[0].https_port = 0;
}

static void serves_some_plain_requests_of_a_redirecting_site(void **state)
{
    (void)state;
    world.sites[0].https_port = 443;
    static const struct {
        const char *request, *status;
    } rows[] = {
        { GET("/.well-known/acme-challenge/token"), "404" }, /* an issuer fetches it over http */
        { GET("/.well-known/other"), "308" },
        { GET("/.well-known/acme-challenge"), "308" },
        { "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "204" },     /* it has no path */
        { "GET /small.html HTTP/1.0\r\n\r\n", "200" },          /* it names no host */
        { "GET / HTTP/1.1\r\nHost: list.test\r\n\r\n", "200" }, /* another site */
        { GET("/a%2Fb"), "404" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strncmp(head_of_answer(rows[i].request) + 9, rows[i].status, 3) != 0)
            fail_msg("%s gives %s", rows[i].request, head_of_answer(rows[i].request));
    world.sites[0].https_port = 0;
}

static void refuses_a_location_that_is_too_long(void **state)
{
    (void)state;
    char request[4096];
    world.sites[0].https_port = 443;
    int len = snprintf(request, sizeof(request), "GET /%03000d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    assert_true(len < (int)sizeof(request));
    assert_memory_equal(head_of_answer(request), "HTTP/1.1 414 ", 13);
    world.sites[0].https_port = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_one_read_leave_in_one_send),
        cmocka_unit_test(an_idle_connection_holds_no_buffer),
        cmocka_unit_test(answers_more_requests_than_the_buffer_holds),
        cmocka_unit_test(short_writes_give_the_same_bytes),
        cmocka_unit_test(multipart_lengths_are_exact),
        cmocka_unit_test(short_parts_leave_in_one_send),
        cmocka_unit_test(a_held_answer_survives_a_tick_and_an_eviction),
        cmocka_unit_test(a_file_rewritten_while_it_is_sent_is_never_completed),
        cmocka_unit_test(a_file_cut_short_ends_the_connection),
        cmocka_unit_test(a_slow_head_gets_408_at_an_absolute_deadline),
        cmocka_unit_test(an_idle_connection_closes_without_an_answer),
        cmocka_unit_test(a_client_that_reads_too_slowly_is_cut_off),
        cmocka_unit_test(a_client_that_stays_below_the_least_rate_is_cut_off),
        cmocka_unit_test(a_body_must_arrive_at_the_least_rate),
        cmocka_unit_test(the_rate_does_not_lengthen_the_time_of_a_body),
        cmocka_unit_test(a_connection_retires_after_its_last_request),
        cmocka_unit_test(a_connection_retires_after_its_time),
        cmocka_unit_test(an_address_that_sends_too_much_gets_429),
        cmocka_unit_test(a_client_that_makes_progress_is_not_cut_off),
        cmocka_unit_test(a_drain_closes_after_the_answer),
        cmocka_unit_test(only_the_final_output_of_a_closing_connection_is_last),
        cmocka_unit_test(discards_a_bounded_number_of_bytes_after_the_last_answer),
        cmocka_unit_test(discards_a_body_and_finds_the_next_request),
        cmocka_unit_test(a_head_request_for_a_listing_renders_nothing),
        cmocka_unit_test(a_listing_outside_of_the_cache_counts_until_it_is_sent),
        cmocka_unit_test(a_cached_listing_is_not_limited),
        cmocka_unit_test(a_request_waits_for_its_chunks_within_the_time_of_a_body),
        cmocka_unit_test(a_connection_that_is_refused_does_not_wait_for_chunks),
        cmocka_unit_test(redirects_plain_requests_to_https),
        cmocka_unit_test(serves_some_plain_requests_of_a_redirecting_site),
        cmocka_unit_test(refuses_a_location_that_is_too_long),
        cmocka_unit_test(a_connection_that_ends_within_its_chunks_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_session_world, end_session_world);
}
