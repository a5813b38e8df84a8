/* SPDX-License-Identifier: MIT
 *
 * A loop that has as many connections as it may: one of them makes space, and then the loop has
 * nothing to do until the next event. A loop whose sessions always have an answer ready still does
 * its other work.
 */
#include "model/loop.h"

#include "model/model.h"
#include "os/file.h"
#include "session/thread.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct session_shared shared;
static struct server server = { .shared = &shared, .listener_sets = 1, .passed.fd = -1 };
static struct model_loop *loop;
static char folder[] = "/tmp/loop_test.XXXXXX";
static struct os_socket_address address;
static int listener_fd, client_fd;
static int begun_fd; /* of the connection that the loop has begun; -1: none */
static bool closes_later;

bool server_signal(struct server *unused, int signal)
{
    (void)unused;
    (void)signal;
    return false;
}

/* ---- a loop with one connection, which is idle ---- */

static void search_one(struct model_loop *l)
{
    model_idle_offer(l, l);
}

static uint64_t since_the_start(struct model_loop *l, void *who)
{
    (void)l;
    (void)who;
    return 0;
}

static void close_one(struct model_loop *l, void *who)
{
    (void)who;
    if (!closes_later)
        model_loop_count_out(l);
}

static void begin_connection(struct model_loop *l, int fd, struct session_origin origin)
{
    (void)l;
    (void)origin;
    begun_fd = fd;
}

enum { ANSWERS = 1000 };

static struct task task;
static unsigned resumed;

/* The next answer is ready at once. */
static void resume_session(struct model_loop *l, struct session *s)
{
    (void)s;
    assert_ptr_equal(l, loop);
    if (++resumed < ANSWERS)
        task_finish(shared.tasks, &task);
}

static const struct model_idle_kind idle_kind = { search_one, since_the_start, close_one };
static const struct model_loop_kind kind = { .bytes = sizeof(struct model_loop),
                                             .begin = begin_connection,
                                             .resume = resume_session };

static int begin(void **state)
{
    (void)state;
    const struct os_socket_options options = { 0 };
    char text[64];
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    assert_int_equal(os_socket_parse(text, &address), 0);
    listener_fd = os_socket_bind(&address, &options);
    assert_true(listener_fd >= 0);
    assert_int_equal(os_socket_listen(listener_fd, 1), 0);
    client_fd = os_socket_connect(text + strlen("unix:"));
    assert_true(client_fd >= 0);

    server.connections_max = 1;
    loop = model_loops_new(&server, 1, &kind);
    assert_non_null(loop);
    loop->idle.kind = &idle_kind;
    loop->now_ns = 1000 * SECOND;
    stats_writer_open(&loop->thread.stats, NULL);
    atomic_store(&loop->live, 1);
    begun_fd = -1;
    closes_later = false;
    return 0;
}

static int end(void **state)
{
    (void)state;
    stats_writer_close(&loop->thread.stats);
    assert_int_equal(pthread_mutex_destroy(&loop->handed_lock), 0);
    const int wake_fd = loop->wake_fd;
    free(loop);
    os_file_close(begun_fd);
    os_file_close(wake_fd);
    os_file_close(client_fd);
    os_file_close(listener_fd);
    return unlink(((const struct sockaddr_un *)&address.storage)->sun_path);
}

static void a_loop_that_has_made_space_has_nothing_to_do_later(void **state)
{
    (void)state;
    assert_true(model_loop_accept(loop, listener_fd));
    assert_true(begun_fd >= 0);
    assert_true(model_loop_due_ns(loop) == UINT64_MAX);
    loop->now_ns += 10 * SECOND;
    assert_true(model_loop_due_ns(loop) == UINT64_MAX);
}

static void a_loop_looks_for_space_again_when_the_connection_has_not_closed(void **state)
{
    (void)state;
    closes_later = true;
    assert_false(model_loop_accept(loop, listener_fd));
    assert_int_equal(begun_fd, -1);
    assert_true(model_loop_due_ns(loop) == loop->now_ns + SECOND);
    assert_false(model_loop_may_listen(loop));
    loop->now_ns += SECOND;
    assert_true(model_loop_may_listen(loop));
    assert_true(model_loop_due_ns(loop) == UINT64_MAX);
}

static bool is_woken(void)
{
    struct pollfd end = { .fd = loop->wake_fd, .events = POLLIN };
    return poll(&end, 1, 0) == 1;
}

static void a_loop_does_other_work_while_answers_become_ready(void **state)
{
    (void)state;
    const struct task_limits none[TASK_LANES] = { 0 };
    struct session session;
    shared.tasks = task_pool_new(none);
    assert_non_null(shared.tasks);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(loop->wake_fd >= 0);
    loop->home.wake_fd = loop->wake_fd;
    loop->thread.shared = &shared;
    loop->thread.home = &loop->home;
    task = (struct task){ .home = &loop->home, .owner = &session };
    resumed = 0;

    task_finish(shared.tasks, &task);
    assert_true(is_woken());
    model_loop_woken(loop);
    assert_in_range(resumed, 1, ANSWERS - 1);
    while (is_woken())
        model_loop_woken(loop);
    assert_int_equal(resumed, ANSWERS);
    task_pool_free(shared.tasks);
    shared.tasks = NULL;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_that_has_made_space_has_nothing_to_do_later, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            a_loop_looks_for_space_again_when_the_connection_has_not_closed, begin, end),
        cmocka_unit_test_setup_teardown(a_loop_does_other_work_while_answers_become_ready, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
