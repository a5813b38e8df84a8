/* SPDX-License-Identifier: MIT
 *
 * A site that needs a password, driven as a model drives it: which requests have access, what an
 * answer depends on, and how a session waits while a password is compared.
 */
#include "session/access.h"

#include "base/base64.h"
#include "task/task.h"
#include "world.h"

#include <poll.h>
#include <sys/eventfd.h>

/* The password is `sesame`. */
#define ALICE "alice:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"

/* A part of the file. */
#define CONTENT "ssss"

enum { WAIT_MS = 60 * 1000 };

static struct {
    struct auth_file *users;
    struct session_access access;
    struct session_guard guard;
    char challenge[SESSION_CHALLENGE_MAX];
    struct task_home home;
} staff;

/* The second site is open to all. */
static int make_access_world(void **state)
{
    (void)state;
    static const char *const open[] = { "open.test", NULL };
    const char *why;
    unsigned line;
    if (make_world() < 0)
        return -1;
    staff.users = auth_file_parse(SPAN(ALICE), &line, &why);
    if (!staff.users || auth_memory_new(&staff.guard.memory) < 0)
        return -1;
    staff.access = (struct session_access){
        .users = staff.users,
        .challenge = session_access_challenge(staff.challenge, "Staff"),
    };
    staff.home = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    world.sites[0].access = &staff.access;
    world.sites[1] = (struct session_site){ .site = world.site, .hosts = open };
    world.shared.site_count = 2;
    world.shared.guard = &staff.guard;
    const struct task_limits lanes[TASK_LANES] = { [TASK_COMPUTES] = { 1, 2 } };
    world.shared.tasks = task_pool_new(lanes);
    world.shared.h2c = true;
    return start_world();
}

static int end_access_world(void **state)
{
    (void)state;
    const int rc = end_world();
    task_pool_free(world.shared.tasks);
    auth_file_free(staff.users);
    auth_memory_free(staff.guard.memory);
    close(staff.home.wake_fd);
    return rc;
}

/* ---- requests ---- */

static struct session open_client(uint8_t last_byte)
{
    return open_from((struct session_peer){ .family = 4, .address = { 192, 0, 2, last_byte } });
}

/* A request with credentials, `user:password`, or NULL. */
static const char *request_of(const char *credentials)
{
    static char text[1024];
    char encoded[512] = "";
    if (credentials)
        base64_encode((const uint8_t *)credentials, strlen(credentials), encoded);
    (void)snprintf(text, sizeof(text), "GET /small.html HTTP/1.1\r\nHost: a\r\n%s%s%s\r\n",
                   credentials ? "Authorization: Basic " : "", encoded, credentials ? "\r\n" : "");
    return text;
}

static char answer[64 * 1024];

/* Sends all of the output to `answer`. */
static unsigned send_all(struct session *s)
{
    unsigned want = SESSION_WRITE;
    size_t len = 0;
    while (want & SESSION_WRITE) {
        struct session_out out = session_output(s);
        size_t sent = 0;
        for (unsigned i = 0; i < out.count; i++) {
            assert_true(len + sent + out.piece[i].len < sizeof(answer));
            memcpy(answer + len + sent, out.piece[i].at, out.piece[i].len);
            sent += out.piece[i].len;
        }
        len += sent;
        want = session_sent(s, sent, world.now_ns);
    }
    answer[len] = '\0';
    return want;
}

static bool answers(const char *text)
{
    return strstr(answer, text) != NULL;
}

/* The status of the answer to one request, by a thread that compares in its call. */
static int status_of(const char *request)
{
    struct session s = open_client(1);
    assert_int_equal(feed(&s, request), SESSION_WRITE);
    (void)send_all(&s);
    session_close(&s);
    return atoi(answer + sizeof("HTTP/1.1 ") - 1);
}

/* Waits as a loop does, and returns what the session that is ready wants then. */
static unsigned resume_ready(struct session *expected)
{
    struct session *ready;
    while (!(ready = session_thread_next_ready(&world.thread))) {
        struct pollfd end = { .fd = staff.home.wake_fd, .events = POLLIN };
        uint64_t wakes;
        assert_int_equal(poll(&end, 1, WAIT_MS), 1);
        assert_int_equal(read(staff.home.wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
    }
    assert_ptr_equal(ready, expected);
    return session_resume(ready, world.now_ns);
}

/* ---- who has access ---- */

static void only_the_right_credentials_have_access(void **state)
{
    (void)state;
    assert_int_equal(status_of(request_of("alice:sesame")), 200);
    assert_true(answers(CONTENT));
    assert_int_equal(status_of(request_of(NULL)), 401);
    assert_true(answers("\r\nWWW-Authenticate: Basic realm=\"Staff\", charset=\"UTF-8\"\r\n"));
    assert_int_equal(status_of(request_of("alice:Sesame")), 401);
    assert_true(answers("WWW-Authenticate: "));
    assert_int_equal(status_of(request_of("bob:sesame")), 401);
    assert_int_equal(status_of(request_of(":sesame")), 401);
    assert_int_equal(status_of(request_of("alice")), 401);
    assert_int_equal(status_of("GET /small.html HTTP/1.1\r\nHost: a\r\n"
                               "Authorization: Basic YWxpY2U6c2VzYW1l\r\n"
                               "Authorization: Basic YWxpY2U6c2VzYW1l\r\n\r\n"),
                     401);
    assert_int_equal(status_of("GET /small.html HTTP/1.1\r\nHost: open.test\r\n\r\n"), 200);
}

static void assert_refused(const char *method, const char *target, const char *fields)
{
    char request[512];
    if (strcmp(target, "*") == 0 && strcmp(method, "OPTIONS") != 0)
        return;
    (void)snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n", method, target,
                   fields);
    if (status_of(request) != 401)
        fail_msg("%s\n%s", request, answer);
    assert_false(answers(CONTENT));
    assert_false(answers("ETag"));
}

/* No answer without a password depends on the files of the site. */
static void an_answer_without_access_says_nothing_about_the_site(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/small.html",
        "/absent",
        "/small.html/",
        "//small.html",
        "/./small.html",
        "/a/../small.html",
        "/%73mall.html",
        "/small.html?x",
        "/",
        "*",
        "http://a/small.html",
        "/SMALL.HTML",
        "/.hidden",
        "/small.html.gz",
        "/x/.well-known/acme-challenge/",
        "/.well-known/acme-challenge",
        "/.well-known/acme-challenge/../../small.html",
        "/.well-known/acme-challenge/%2e%2e/%2e%2e/small.html",
    };
    static const char *const methods[] = { "GET", "HEAD", "OPTIONS", "POST", "BREW" };
    static const char *const fields[] = {
        "",
        "Range: bytes=0-0\r\n",
        "If-None-Match: *\r\n",
        "If-Match: \"x\"\r\n",
        "Accept-Encoding: br\r\n",
        "Accept: application/json\r\n",
    };
    for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
        for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++)
            for (size_t f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
                assert_refused(methods[m], targets[t], fields[f]);
    /* Without a password, a target that no site can have is refused as one. */
    assert_int_equal(status_of("GET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
    /* An issuer of certificates has no password. */
    assert_int_equal(status_of("GET /.well-known/acme-challenge/x HTTP/1.1\r\nHost: a\r\n\r\n"),
                     404);
}

static void an_address_with_many_wrong_passwords_waits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < AUTH_ATTEMPTS; i++) {
        assert_int_equal(status_of(request_of("alice:sesame")), 200); /* counts as no attempt */
        assert_int_equal(status_of(request_of("alice:wrong")), 401);
    }
    assert_int_equal(status_of(request_of("alice:wrong")), 429);
    assert_true(answers("\r\nRetry-After: 6\r\n"));
    assert_int_equal(status_of(request_of("alice:sesame")), 200); /* it is remembered */
    assert_int_equal(status_of(request_of(NULL)), 401);
    session_thread_tick(&world.thread, world.now_ns += AUTH_ATTEMPT_S * SECOND, 1800000006);
    assert_int_equal(status_of(request_of("alice:wrong")), 401);
    assert_int_equal(status_of(request_of("alice:wrong")), 429);
}

/* ---- waiting ---- */

static void a_session_waits_while_a_password_is_compared(void **state)
{
    (void)state;
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    assert_int_equal(feed(&s, request_of("alice:sesame")), SESSION_WAIT);
    assert_true(session_is_pending(&s));
    assert_false(session_idle(&s));
    assert_int_equal(session_room(&s), 0);
    assert_int_equal(resume_ready(&s), SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 200 OK\r\n") && answers(CONTENT));
    assert_false(session_is_pending(&s));
    assert_true(session_idle(&s));

    assert_int_equal(feed(&s, request_of("alice:sesame")), SESSION_WRITE); /* remembered */
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 200 OK\r\n"));
    assert_int_equal(feed(&s, request_of("alice:wrong")), SESSION_WAIT);
    assert_int_equal(resume_ready(&s), SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 401 Unauthorized\r\n"));
    session_close(&s);
    assert_null(session_thread_next_ready(&world.thread));
}

/* Sends and resumes until the session waits for input. `answer` has all answers. */
static void serve(struct session *s, unsigned want)
{
    static char all[sizeof(answer)];
    all[0] = answer[0] = '\0';
    while (want != SESSION_READ) {
        want = want == SESSION_WAIT ? resume_ready(s) : send_all(s);
        if (want == SESSION_WRITE)
            continue;
        assert_true(strlen(all) + strlen(answer) < sizeof(all));
        strcat(all, answer);
        answer[0] = '\0';
    }
    strcpy(answer, all);
}

/* Requests before and behind the one that waits are answered in their order. */
static void answers_keep_their_order(void **state)
{
    (void)state;
    static const char *const open_request = "GET /small.html HTTP/1.1\r\nHost: open.test\r\n\r\n";
    static const char *const statuses[] = { "200 OK", "401 Unauthorized", "200 OK", "200 OK" };
    char requests[4096];
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    (void)snprintf(requests, sizeof(requests), "%s%s", open_request, request_of("alice:wrong"));
    (void)snprintf(requests + strlen(requests), sizeof(requests) - strlen(requests), "%s%s",
                   request_of("alice:sesame"), open_request);
    serve(&s, feed(&s, requests));
    const char *at = answer;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        at = strstr(at, "HTTP/1.1 ");
        assert_non_null(at);
        at += sizeof("HTTP/1.1 ") - 1;
        assert_true(span_starts(span_text(at), span_text(statuses[i])));
    }
    assert_null(strstr(at, "HTTP/1.1 "));
    session_close(&s);
}

/* The answer becomes ready while an earlier one is being sent. */
static void a_ready_answer_follows_what_is_being_sent(void **state)
{
    (void)state;
    char requests[2048];
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    (void)snprintf(requests, sizeof(requests), "GET /absent HTTP/1.1\r\nHost: open.test\r\n\r\n%s",
                   request_of("alice:sesame"));
    assert_int_equal(feed(&s, requests), SESSION_WRITE);
    const struct session_out before = session_output(&s);
    assert_int_equal(resume_ready(&s), SESSION_WRITE);
    const struct session_out after = session_output(&s);
    assert_ptr_equal(before.piece[0].at, after.piece[0].at);
    assert_int_equal(before.piece[0].len, after.piece[0].len);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 404 Not Found\r\n"));
    assert_true(answers("HTTP/1.1 200 OK\r\n"));
    session_close(&s);
}

static void a_resume_without_a_reason_changes_nothing(void **state)
{
    (void)state;
    struct session s = open_client(1);
    assert_int_equal(session_resume(&s, world.now_ns), SESSION_READ);
    assert_int_equal(feed(&s, request_of("alice:sesame")), SESSION_WRITE);
    assert_int_equal(session_resume(&s, world.now_ns), SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    session_close(&s);
}

static void a_client_that_leaves_is_not_answered(void **state)
{
    (void)state;
    world.thread.home = &staff.home;
    for (unsigned i = 0; i < 50; i++) {
        struct session s = open_client((uint8_t)i);
        assert_int_equal(feed(&s, request_of("alice:wrong")), SESSION_WAIT);
        session_close(&s);
        assert_null(session_thread_next_ready(&world.thread));
    }
}

/* One thread compares, and the queue holds two: more are refused, and served later. */
static void a_full_queue_refuses(void **state)
{
    enum { MANY = 12 };
    (void)state;
    struct session sessions[MANY];
    unsigned refused = 0, waiting = 0;
    world.thread.home = &staff.home;
    for (unsigned i = 0; i < MANY; i++) {
        sessions[i] = open_client((uint8_t)i);
        unsigned want = feed(&sessions[i], request_of("alice:wrong"));
        waiting += want == SESSION_WAIT;
        if (want != SESSION_WRITE)
            continue;
        refused++;
        assert_int_equal(send_all(&sessions[i]), SESSION_READ);
        assert_true(answers("HTTP/1.1 503 ") && answers("\r\nRetry-After: 1\r\n"));
    }
    assert_int_equal(refused + waiting, MANY);
    assert_true(waiting > 0);
    for (unsigned i = 0; i < MANY; i++)
        session_close(&sessions[i]);
}

static void an_answer_is_not_pending_for_ever(void **state)
{
    (void)state;
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    assert_int_equal(feed(&s, request_of("alice:sesame")), SESSION_WAIT);
    world.now_ns = session_deadline_ns(&s);
    session_thread_tick(&world.thread, world.now_ns, 1800000030);
    unsigned want = session_expire(&s, world.now_ns);
    assert_int_equal(want, SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 503 "));
    assert_null(session_thread_next_ready(&world.thread));
    session_close(&s);
}

/* Both requests come before the password is compared, and the address has one attempt left. */
static void the_same_right_password_is_no_second_attempt(void **state)
{
    (void)state;
    for (unsigned i = 1; i < AUTH_ATTEMPTS; i++)
        assert_int_equal(status_of(request_of("alice:wrong")), 401);
    world.thread.home = &staff.home;
    struct session first = open_client(1), second = open_client(1);
    const unsigned first_wants = feed(&first, request_of("alice:sesame"));
    const unsigned second_wants = feed(&second, request_of("alice:sesame"));
    serve(&first, first_wants);
    assert_true(answers("HTTP/1.1 200 OK\r\n"));
    serve(&second, second_wants);
    assert_true(answers("HTTP/1.1 200 OK\r\n"));
    session_close(&first);
    session_close(&second);
}

static void a_password_that_was_not_compared_is_no_attempt(void **state)
{
    (void)state;
    struct session sessions[AUTH_ATTEMPTS];
    char credentials[32];
    unsigned refused = 0;
    world.thread.home = &staff.home;
    for (unsigned i = 0; i < AUTH_ATTEMPTS; i++) {
        (void)snprintf(credentials, sizeof(credentials), "alice:wrong %u", i);
        sessions[i] = open_client(1);
        if (feed(&sessions[i], request_of(credentials)) == SESSION_WAIT)
            continue;
        refused++;
        assert_int_equal(send_all(&sessions[i]), SESSION_READ);
        assert_true(answers("HTTP/1.1 503 "));
    }
    for (unsigned i = 0; i < AUTH_ATTEMPTS; i++)
        session_close(&sessions[i]);
    world.thread.home = NULL;
    for (unsigned i = 0; i < refused; i++)
        assert_int_equal(status_of(request_of("alice:wrong")), 401);
}

/* The body of the request is discarded after the answer. */
static void a_body_follows_a_request_that_waits(void **state)
{
    (void)state;
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    assert_int_equal(feed(&s, "GET /small.html HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                              "Authorization: Basic YWxpY2U6c2VzYW1l\r\n\r\nbody"
                              "GET /small.html HTTP/1.1\r\nHost: open.test\r\n\r\n"),
                     SESSION_WAIT);
    assert_int_equal(resume_ready(&s), SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    const char *first = strstr(answer, "HTTP/1.1 200 OK\r\n");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "HTTP/1.1 200 OK\r\n"));
    session_close(&s);
}

static void a_chunked_request_waits_after_its_body(void **state)
{
    (void)state;
    world.thread.home = &staff.home;
    struct session s = open_client(1);
    assert_int_equal(feed(&s,
                          "GET /small.html HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
                          "Authorization: Basic YWxpY2U6c2VzYW1l\r\n\r\n2\r\nab\r\n"),
                     SESSION_READ);
    assert_int_equal(feed(&s, "0\r\n\r\n"), SESSION_WAIT);
    assert_int_equal(resume_ready(&s), SESSION_WRITE);
    assert_int_equal(send_all(&s), SESSION_READ);
    assert_true(answers("HTTP/1.1 200 OK\r\n"));
    session_close(&s);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, make_access_world, end_access_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(only_the_right_credentials_have_access),
        WITH_WORLD(an_answer_without_access_says_nothing_about_the_site),
        WITH_WORLD(an_address_with_many_wrong_passwords_waits),
        WITH_WORLD(a_session_waits_while_a_password_is_compared),
        WITH_WORLD(answers_keep_their_order),
        WITH_WORLD(a_ready_answer_follows_what_is_being_sent),
        WITH_WORLD(a_resume_without_a_reason_changes_nothing),
        WITH_WORLD(a_client_that_leaves_is_not_answered),
        WITH_WORLD(a_full_queue_refuses),
        WITH_WORLD(an_answer_is_not_pending_for_ever),
        WITH_WORLD(the_same_right_password_is_no_second_attempt),
        WITH_WORLD(a_password_that_was_not_compared_is_no_attempt),
        WITH_WORLD(a_body_follows_a_request_that_waits),
        WITH_WORLD(a_chunked_request_waits_after_its_body),
    };
    return cmocka_run_group_tests_name("session/access", tests, NULL, NULL);
}
