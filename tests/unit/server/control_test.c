/* SPDX-License-Identifier: MIT
 *
 * The control socket, with a table of commands of its own.
 */
#include "server/control.h"

#include "os/clock.h"
#include "os/socket.h"
#include "server/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static char folder[] = "/tmp/control_test.XXXXXX";
static char path[64];
static char tried[SERVER_RUNTIME_MAX];
static int asked; /* how often a command ran */

static enum server_control_outcome greet(void *context, struct server_control_client *client)
{
    asked++;
    server_control_say(client, "hello, %s\n", (const char *)context);
    return SERVER_CONTROL_OK;
}

static enum server_control_outcome refuse(void *context, struct server_control_client *client)
{
    (void)context;
    server_control_say(client, "no\n");
    return SERVER_CONTROL_FAILED;
}

static enum server_control_outcome wait(void *context, struct server_control_client *client)
{
    (void)context;
    (void)client;
    return SERVER_CONTROL_LATER;
}

/* The same, in one piece. */
static enum server_control_outcome rant(void *context, struct server_control_client *client)
{
    (void)context;
    static char text[2 * SERVER_CONTROL_ANSWER_MAX];
    memset(text, 'x', sizeof(text) - 1);
    for (size_t i = 9; i < sizeof(text) - 1; i += 10)
        text[i] = '\n';
    server_control_say(client, "%s", text);
    return SERVER_CONTROL_OK;
}

/* More than an answer may have, in one piece too many. */
static enum server_control_outcome talk(void *context, struct server_control_client *client)
{
    (void)context;
    for (int i = 0; i < 2 * SERVER_CONTROL_ANSWER_MAX / 10; i++)
        server_control_say(client, "line %04d\n", i % 10000);
    return SERVER_CONTROL_OK;
}

static const struct server_control_command commands[] = {
    { "greet", greet }, { "refuse", refuse }, { "wait", wait }, { "wait now", wait },
    { "talk", talk },   { "rant", rant },     { NULL, NULL },
};

static struct server_control *open_at(const char *where)
{
    struct server_control *control;
    assert_int_equal(
        server_control_open(&control, where, -1, commands, (void *)(uintptr_t) "you", tried), 0);
    return control;
}

/* Lets the server do all that there is to do at the time `now_ns`. */
static void serve(struct server_control *control, uint64_t now_ns)
{
    struct pollfd ends[SERVER_CONTROL_POLL];
    for (;;) {
        size_t count = server_control_poll(control, ends);
        assert_in_range(count, 0, SERVER_CONTROL_POLL);
        int ready = poll(ends, count, 0);
        server_control_serve(control, ends, count, now_ns);
        if (ready <= 0)
            return;
    }
}

static int client_that_says(const char *where, const char *text)
{
    int fd = os_socket_connect(where);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    return fd;
}

static size_t receive(int fd, char *text, size_t size)
{
    ssize_t len = recv(fd, text, size - 1, MSG_DONTWAIT);
    assert_true(len >= 0 || errno == EAGAIN);
    text[len > 0 ? len : 0] = '\0';
    return len > 0 ? (size_t)len : 0;
}

static bool is_closed(int fd)
{
    char byte;
    ssize_t len = recv(fd, &byte, 1, MSG_DONTWAIT);
    return len == 0 || (len < 0 && errno == ECONNRESET);
}

static void answers_a_request_and_closes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "greet\n", "hello, you\nok\n" },
        { "refuse\n", "no\nfailed\n" },
        { "greet\nrefuse\n", "hello, you\nok\n" },
    };
    struct server_control *control = open_at(path);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        int fd = client_that_says(path, cases[i][0]);
        serve(control, 1);
        receive(fd, text, sizeof(text));
        assert_string_equal(text, cases[i][1]);
        assert_true(is_closed(fd));
        close(fd);
    }
    server_control_close(control);
    assert_int_equal(access(path, F_OK), -1);
}

/* Else it would look again and again. */
static void looks_later_for_a_client_that_it_has_no_descriptor_for(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    struct pollfd ends[SERVER_CONTROL_POLL];
    struct rlimit before, none;
    char text[256];
    int fd = client_that_says(path, "greet\n");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    size_t count = server_control_poll(control, ends);
    assert_int_equal(poll(ends, count, 0), 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    server_control_serve(control, ends, count, SECOND);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

    assert_int_equal(server_control_poll(control, ends), 0);
    uint64_t again_ns = server_control_due_ns(control);
    assert_in_range(again_ns, SECOND + 1, 2 * SECOND);
    serve(control, again_ns - 1);
    assert_int_equal(receive(fd, text, sizeof(text)), 0);
    serve(control, again_ns); /* the pause ends */
    serve(control, again_ns);
    receive(fd, text, sizeof(text));
    assert_string_equal(text, "hello, you\nok\n");
    assert_int_equal(server_control_due_ns(control), UINT64_MAX);
    close(fd);
    server_control_close(control);
}

static void accepts_a_request_in_pieces(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    char text[256];
    int fd = client_that_says(path, "gr");
    serve(control, 1);
    assert_int_equal(receive(fd, text, sizeof(text)), 0);
    assert_int_equal(send(fd, "eet\n", 4, 0), 4);
    serve(control, 1);
    receive(fd, text, sizeof(text));
    assert_string_equal(text, "hello, you\nok\n");
    close(fd);
    server_control_close(control);
}

static void refuses_an_unknown_command(void **state)
{
    (void)state;
    char longest[SERVER_CONTROL_REQUEST_MAX + 2];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    const char *const cases[] = { "\n", "gree\n", "greet \n", "GREET\n", "\xff\n", longest };
    struct server_control *control = open_at(path);
    asked = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        int fd = client_that_says(path, cases[i]);
        serve(control, 1);
        size_t len = receive(fd, text, sizeof(text));
        assert_true(len > 7);
        assert_string_equal(text + len - 7, "failed\n");
        close(fd);
    }
    assert_int_equal(asked, 0);
    server_control_close(control);
}

static void reports_progress_until_the_outcome(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    char text[256];
    int one = client_that_says(path, "wait\n"), other = client_that_says(path, "wait now\n");
    serve(control, 1);
    assert_int_equal(receive(one, text, sizeof(text)), 0);
    assert_int_equal(server_control_due_ns(control), UINT64_MAX);
    server_control_report(control, "wait", "...%d left\n", 3);
    receive(one, text, sizeof(text));
    assert_string_equal(text, "...3 left\n");
    server_control_finish(control, "wait", false, 1);
    receive(one, text, sizeof(text));
    assert_string_equal(text, "failed\n");
    assert_true(is_closed(one));
    assert_int_equal(receive(other, text, sizeof(text)), 0);
    server_control_finish(control, "wait now", true, 1);
    receive(other, text, sizeof(text));
    assert_string_equal(text, "ok\n");
    close(one);
    close(other);
    server_control_close(control);
}

static void closes_a_client_that_sends_nothing(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    int fd = client_that_says(path, "gree");
    serve(control, 1000);
    uint64_t due = server_control_due_ns(control);
    assert_int_equal(due, 1000 + SERVER_CONTROL_CLIENT_MS * UINT64_C(1000000));
    serve(control, due - 1);
    assert_false(is_closed(fd));
    serve(control, due);
    assert_true(is_closed(fd));
    assert_int_equal(server_control_due_ns(control), UINT64_MAX);
    close(fd);
    server_control_close(control);
}

static void a_client_that_closes_frees_its_place(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    int fds[SERVER_CONTROL_CLIENTS];
    char text[256];
    for (int i = 0; i < SERVER_CONTROL_CLIENTS; i++)
        fds[i] = client_that_says(path, "wait\n");
    serve(control, 1);
    int late = client_that_says(path, "greet\n");
    serve(control, 1);
    assert_int_equal(receive(late, text, sizeof(text)), 0);
    close(fds[0]);
    serve(control, 1);
    receive(late, text, sizeof(text));
    assert_string_equal(text, "hello, you\nok\n");
    for (int i = 1; i < SERVER_CONTROL_CLIENTS; i++)
        close(fds[i]);
    close(late);
    serve(control, 1);
    server_control_close(control);
}

static void assert_cut(struct server_control *control, const char *request)
{
    int fd = client_that_says(path, request);
    static char all[4 * SERVER_CONTROL_ANSWER_MAX];
    size_t len = 0;
    for (int i = 0; i < 1000; i++) {
        serve(control, 1);
        len += receive(fd, all + len, sizeof(all) - len);
        assert_true(len < sizeof(all) - 1);
        if (len >= 3 && strcmp(all + len - 3, "ok\n") == 0)
            break;
    }
    assert_in_range(len, SERVER_CONTROL_ANSWER_MAX - 10, SERVER_CONTROL_ANSWER_MAX + 3);
    assert_string_equal(all + len - 3, "ok\n");
    close(fd);
}

static void an_answer_that_is_too_long_keeps_its_last_line(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    static const char *const requests[] = { "talk\n", "rant\n" };
    for (size_t i = 0; i < 2; i++)
        assert_cut(control, requests[i]);
    server_control_close(control);
}

static void only_the_user_can_connect(void **state)
{
    (void)state;
    struct stat info;
    mode_t before = umask(0);
    struct server_control *control = open_at(path);
    umask(before);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    server_control_close(control);
}

static void accepts_no_client_while_paused(void **state)
{
    (void)state;
    struct server_control *control = open_at(path);
    char text[64];
    server_control_pause(control);
    int fd = client_that_says(path, "greet\n");
    serve(control, 1);
    assert_int_equal(receive(fd, text, sizeof(text)), 0);
    server_control_continue(control);
    serve(control, 1);
    receive(fd, text, sizeof(text));
    assert_string_equal(text, "hello, you\nok\n");
    close(fd);
    server_control_close(control);
}

static void refuses_a_path_in_use_and_replaces_a_stale_one(void **state)
{
    (void)state;
    struct server_control *first = open_at(path), *second;
    assert_int_equal(server_control_open(&second, path, -1, commands, NULL, tried), -EADDRINUSE);
    assert_string_equal(tried, path);
    server_control_leave(first); /* as if it were killed */
    assert_int_equal(access(path, F_OK), 0);
    second = open_at(path);
    server_control_close(second);
    assert_int_equal(server_control_open(&second, "/nowhere/weir.sock", -1, commands, NULL, tried),
                     -ENOENT);
}

static void keeps_a_file_at_its_path(void **state)
{
    (void)state;
    struct server_control *control;
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(server_control_open(&control, path, -1, commands, NULL, tried), -ENOTSOCK);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    control = open_at(path);
    assert_int_equal(unlink(path), 0);
    file = fopen(path, "we"); /* the operator has replaced the socket */
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    server_control_close(control);
    assert_int_equal(unlink(path), 0);
}

static void a_successor_listens_with_the_same_socket(void **state)
{
    (void)state;
    struct server_control *old = open_at(path), *new;
    char text[64];
    int inherited = dup(server_control_listener(old));
    assert_true(inherited >= 0);
    server_control_retire(old);
    server_control_close(old);
    int fd = client_that_says(path, "greet\n");
    assert_int_equal(server_control_open(&new, path, inherited, commands, NULL, tried), 0);
    serve(new, 1);
    assert_true(receive(fd, text, sizeof(text)) > 0);
    close(fd);
    server_control_close(new); /* it has failed: the path stays the predecessor's */
    assert_int_equal(access(path, F_OK), 0);
}

static void a_successor_that_serves_removes_the_socket_at_its_end(void **state)
{
    (void)state;
    struct server_control *old = open_at(path), *new;
    int inherited = dup(server_control_listener(old));
    assert_true(inherited >= 0);
    server_control_retire(old);
    server_control_close(old);
    assert_int_equal(server_control_open(&new, path, inherited, commands, NULL, tried), 0);
    server_control_keep(new);
    server_control_close(new);
    assert_int_equal(access(path, F_OK), -1);
}

static void the_automatic_path_has_the_process_id(void **state)
{
    (void)state;
    char expected[SERVER_RUNTIME_MAX], stale[SERVER_RUNTIME_MAX];
    pid_t pids[4];
    setenv("RUNTIME_DIRECTORY", folder, 1);
    snprintf(stale, sizeof(stale), "%s/%d.sock", folder, (int)getppid());
    snprintf(expected, sizeof(expected), "%s/%d.sock", folder, (int)getpid());
    struct server_control *other = open_at(stale);
    server_control_leave(other);
    assert_int_equal(access(stale, F_OK), 0);

    struct server_control *control = open_at("auto");
    assert_string_equal(tried, expected);
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(server_control_listener(control), -1);
    assert_int_equal(server_runtime_list(folder, pids, 4), 1);
    assert_int_equal(pids[0], getpid());
    int fd = client_that_says(expected, "wait\n");
    serve(control, 1);
    server_control_retire(control);
    assert_int_equal(access(expected, F_OK), -1);
    server_control_finish(control, "wait", true, 1);
    char text[64];
    receive(fd, text, sizeof(text));
    assert_string_equal(text, "ok\n");
    close(fd);
    server_control_close(control);
}

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_a_request_and_closes),
        cmocka_unit_test(looks_later_for_a_client_that_it_has_no_descriptor_for),
        cmocka_unit_test(accepts_a_request_in_pieces),
        cmocka_unit_test(refuses_an_unknown_command),
        cmocka_unit_test(reports_progress_until_the_outcome),
        cmocka_unit_test(closes_a_client_that_sends_nothing),
        cmocka_unit_test(a_client_that_closes_frees_its_place),
        cmocka_unit_test(an_answer_that_is_too_long_keeps_its_last_line),
        cmocka_unit_test(only_the_user_can_connect),
        cmocka_unit_test(accepts_no_client_while_paused),
        cmocka_unit_test(refuses_a_path_in_use_and_replaces_a_stale_one),
        cmocka_unit_test(keeps_a_file_at_its_path),
        cmocka_unit_test(a_successor_listens_with_the_same_socket),
        cmocka_unit_test(a_successor_that_serves_removes_the_socket_at_its_end),
        cmocka_unit_test(the_automatic_path_has_the_process_id),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
