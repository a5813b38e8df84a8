/* SPDX-License-Identifier: MIT
 *
 * One proof that a path is absent answers all requests that began before the turn of the loop. A
 * request that may have begun later finds a file that has appeared.
 */
#include "session/turn.h"

#include "world.h"

static struct site *second_site;
static char second_root[80];

static int make_turn_world(void **state)
{
    (void)state;
    static const char *const hosts[] = { "other.test", NULL }, *const index[] = { NULL };
    static const struct site_options options = {
        .name = "other", .root = second_root, .index = index, .body_max = 1024
    };
    if (make_world() < 0)
        return -1;
    (void)snprintf(second_root, sizeof(second_root), "%s/other", world.root);
    const char *what;
    if (mkdir(second_root, 0755) < 0 || site_open(&second_site, &options, world.mime, &what) < 0)
        return -1;
    world.sites[1] = (struct session_site){ .site = second_site, .hosts = hosts };
    world.shared.site_count = 2;
    return start_world();
}

static int end_turn_world(void **state)
{
    (void)state;
    (void)rmdir(second_root);
    const int rc = end_world();
    site_close(second_site);
    return rc;
}

/* Sends everything. Returns how many answers begin so; bodies in files are not read. */
static size_t count_answers(struct session *s, const char *beginning)
{
    size_t count = 0;
    unsigned want = SESSION_WRITE;
    while (want & SESSION_WRITE) {
        const struct session_out out = session_output(s);
        size_t len = (size_t)out.file_len;
        for (unsigned i = 0; i < out.count; i++) {
            const char *at = out.piece[i].at, *const end = at + out.piece[i].len;
            len += out.piece[i].len;
            while ((at = memmem(at, (size_t)(end - at), beginning, strlen(beginning))) != NULL) {
                at += strlen(beginning);
                count++;
            }
        }
        want = session_sent(s, len, world.now_ns);
    }
    assert_int_equal(want, SESSION_READ);
    return count;
}

static void begin_turn(bool reported)
{
    tick(1);
    world.thread.turn.reported = reported;
}

/* Feeds `text`, sends all answers, and compares the number of those with 404. */
static void assert_absent(struct session *s, const char *text, size_t count)
{
    assert_int_equal(feed(s, text), SESSION_WRITE);
    assert_int_equal(count_answers(s, "HTTP/1.1 404 "), count);
}

static void one_proof_answers_all_requests_that_began_before_the_turn(void **state)
{
    (void)state;
    struct session first = open_session(), second = open_session(), third = open_session();
    assert_int_equal(feed(&third, "GET /late.ht"), SESSION_READ);
    begin_turn(true);
    assert_absent(&first, GET("/late.html"), 1);
    write_file("late.html", 1, 'l');
    assert_absent(&second, GET("/late.html"), 1);
    assert_absent(&third, "ml HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    begin_turn(true);
    assert_absent(&second, GET("/late.html"), 0);
    remove_file("late.html");
    session_close(&first);
    session_close(&second);
    session_close(&third);
    tick(60 * SECOND);
}

static void a_request_that_may_have_begun_later_gets_a_proof_of_its_own(void **state)
{
    (void)state;
    static const struct {
        bool reported;
        const char *text;
    } cases[] = {
        { false, GET("/late.html") },
        { true, GET("/small.html") GET("/late.html") },
        { true, "\r\n" GET("/late.html") },
        { true, GET("/Late.html") GET("/late.html") },
        { true, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx" GET("/late.html") },
        { true, "GET /late.html HTTP/1.1\r\nHost: other.test\r\n\r\n" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct session first = open_session(), second = open_session();
        begin_turn(cases[i].reported);
        assert_absent(&first, GET("/late.html"), 1);
        write_file("late.html", 1, 'l');
        write_file("other/late.html", 1, 'l');
        assert_absent(&second, cases[i].text, i == 3);
        remove_file("late.html");
        remove_file("other/late.html");
        session_close(&first);
        session_close(&second);
        tick(60 * SECOND);
    }
}

static void requests_that_were_kept_get_a_proof_of_their_own(void **state)
{
    (void)state;
    static const char long_answers[] = GET("/big.bin") GET("/late.html");
    struct session first = open_session(), second = open_session();
    begin_turn(true);
    assert_int_equal(feed(&second, long_answers), SESSION_WRITE);
    assert_absent(&first, GET("/late.html"), 1);
    write_file("late.html", 1, 'l');
    assert_int_equal(count_answers(&second, "HTTP/1.1 200 "), 2);
    remove_file("late.html");
    session_close(&first);
    session_close(&second);
    tick(60 * SECOND);
}

static void a_path_that_is_too_long_to_keep_is_looked_up(void **state)
{
    (void)state;
    char name[SESSION_TURN_PATH_MAX + 20], text[2 * sizeof(name)];
    struct session s = open_session();
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", name);
    begin_turn(true);
    assert_absent(&s, text, 1);
    assert_int_equal(world.thread.turn.len, 0);
    assert_absent(&s, text, 1);
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_proof_answers_all_requests_that_began_before_the_turn),
        cmocka_unit_test(a_request_that_may_have_begun_later_gets_a_proof_of_its_own),
        cmocka_unit_test(requests_that_were_kept_get_a_proof_of_their_own),
        cmocka_unit_test(a_path_that_is_too_long_to_keep_is_looked_up),
    };
    return cmocka_run_group_tests(tests, make_turn_world, end_turn_world);
}
