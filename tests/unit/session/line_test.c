/* SPDX-License-Identifier: MIT
 *
 * Lines with a layout: they wait until their answers are sent, and have the time that took.
 */
#include "log/layout.h"

#include "world.h"

static struct log_layout layout;

static int make_line_world(void **state)
{
    (void)state;
    const struct log_layout_request request = {
        .format = SPAN("$request_uri $status $body_bytes_sent $request_time_us $receive_us "
                       "$send_us $cache $server_name $http_range")
    };
    char why[LOG_LAYOUT_WHY_MAX];
    if (make_world() < 0 || !log_layout_make(&layout, &request, why) ||
        log_access_open(&world.log, "/dev/null", &layout, NULL) < 0)
        return -1;
    world.sites[0].name = "main";
    return start_world();
}

static int end_line_world(void **state)
{
    (void)state;
    return end_world();
}

/* The models set the thread's time after a send (model/transfer.c). */
static void pass_time(uint64_t ns)
{
    world.now_ns += ns;
    world.thread.now_ns = world.now_ns;
}

/* Sends at most `most` bytes, as a model does, and returns what the session wants. */
static unsigned send_some(struct session *s, size_t most)
{
    const struct session_out out = session_output(s);
    size_t len = 0;
    for (unsigned i = 0; i < out.count; i++)
        len += out.piece[i].len;
    len += (size_t)out.file_len;
    return session_sent(s, len < most ? len : most, world.now_ns);
}

static unsigned send_all(struct session *s)
{
    unsigned want = SESSION_WRITE;
    while (want & SESSION_WRITE)
        want = send_some(s, SIZE_MAX);
    return want;
}

static void forget_lines(void)
{
    log_access_forget(&world.thread.own_log);
}

static void assert_logged(const char *want)
{
    const struct log_access *log = &world.thread.own_log;
    if (log->len != strlen(want) || memcmp(log->bytes, want, log->len) != 0)
        fail_msg("got:\n%.*swant:\n%s", (int)log->len, log->bytes, want);
    forget_lines();
}

static void a_line_waits_until_its_answer_is_sent(void **state)
{
    (void)state;
    settle("/small.html");
    forget_lines();
    struct session s = open_session();
    assert_int_equal(session_feed(&s, SPAN("GET /small.html HTTP/1.1\r\nHos"), world.now_ns),
                     SESSION_READ);
    tick(2000000); /* 2 ms */
    assert_int_equal(session_feed(&s, SPAN("t: a\r\n\r\n"), world.now_ns), SESSION_WRITE);
    assert_logged("");
    pass_time(3000);
    assert_true((send_some(&s, 10) & SESSION_WRITE) != 0);
    assert_logged("");
    pass_time(4000);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_logged("/small.html 200 308 2007 2000 7 hit main -\n");
    session_close(&s);
    assert_logged("");
}

static void lines_of_a_batch_keep_their_order(void **state)
{
    (void)state;
    struct session s = open_session();
    settle("/small.html");
    forget_lines();
    static const char requests[] = GET("/small.html")
        GET("/none") "GET /big.bin HTTP/1.1\r\nHost: a\r\n"
                     "Range: bytes=0-99999\r\n\r\n" GET("/small.html");
    assert_int_equal(session_feed(&s, span_text(requests), world.now_ns), SESSION_WRITE);
    pass_time(5000);
    assert_int_equal(send_all(&s), SESSION_READ);
    const char *const bytes = world.thread.own_log.bytes;
    assert_true(span_starts(span_of(bytes, world.thread.own_log.len),
                            SPAN("/small.html 200 308 5 0 5 hit main -\n/none 404 ")));
    const struct span log = span_of(bytes, world.thread.own_log.len);
    assert_non_null(memmem(log.at, log.len,
                           SPAN(" main -\n/big.bin 206 100000 5 0 5 miss main "
                                "bytes=0-99999\n/small.html 200 308 ")
                               .at,
                           strlen(" main -\n/big.bin 206 100000 5 0 5 miss main "
                                  "bytes=0-99999\n/small.html 200 308 ")));
    session_close(&s);
    forget_lines();
}

static void an_answer_that_is_cut_has_its_line(void **state)
{
    (void)state;
    settle("/small.html");
    forget_lines();
    struct session s = open_session();
    assert_int_equal(session_feed(&s, SPAN(GET("/small.html") GET("/big.bin")), world.now_ns),
                     SESSION_WRITE);
    pass_time(1000);
    (void)send_some(&s, 1000);
    pass_time(1000);
    session_close(&s);
    const struct span log = span_of(world.thread.own_log.bytes, world.thread.own_log.len);
    assert_true(span_starts(log, SPAN("/small.html 200 308 2 0 2 hit main -\n/big.bin 200 ")));
    assert_int_equal(world.thread.own_log.lines_pending, 2);
    forget_lines();
}

static void bytes_that_are_no_request_have_a_line(void **state)
{
    (void)state;
    struct session s = open_session();
    assert_int_equal(session_feed(&s, SPAN("nonsense\r\n\r\n"), world.now_ns), SESSION_WRITE);
    (void)send_all(&s);
    const struct span log = span_of(world.thread.own_log.bytes, world.thread.own_log.len);
    assert_true(span_starts(log, SPAN("- 400 ")));
    assert_true(span_ends(log, SPAN(" 0 0 0 - - -\n")));
    session_close(&s);
    forget_lines();
}

static void a_sample_leaves_lines_out_but_no_errors(void **state)
{
    (void)state;
    enum { REQUESTS = 1000 };
    struct session s = open_session();
    unsigned lines = 0, errors = 0;
    layout.sample = 10;
    for (unsigned i = 0; i < REQUESTS; i++) {
        const struct span request = i % 10 == 0 ? SPAN(GET("/none")) : SPAN(GET("/small.html"));
        assert_int_equal(session_feed(&s, request, world.now_ns), SESSION_WRITE);
        assert_int_equal(send_all(&s), SESSION_READ);
        errors += i % 10 == 0;
        lines += (unsigned)world.thread.own_log.lines_pending;
        forget_lines();
        world.thread.own_log.lines_pending = 0;
    }
    layout.sample = 1;
    assert_int_equal(errors, 100);
    assert_in_range(lines, 100 + 50, 100 + 140); /* 900 answers, of which one in ten has a line */
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_waits_until_its_answer_is_sent),
        cmocka_unit_test(lines_of_a_batch_keep_their_order),
        cmocka_unit_test(an_answer_that_is_cut_has_its_line),
        cmocka_unit_test(bytes_that_are_no_request_have_a_line),
        cmocka_unit_test(a_sample_leaves_lines_out_but_no_errors),
    };
    return cmocka_run_group_tests(tests, make_line_world, end_line_world);
}
