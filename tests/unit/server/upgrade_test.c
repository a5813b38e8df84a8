/* SPDX-License-Identifier: MIT
 *
 * The start of a successor. The test program starts itself; as the successor it
 * behaves as a variable says.
 */
#include "server/upgrade.h"

#include "os/clock.h"
#include "server/inherited.h"
#include "server/management.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT_MS = 20000 };
enum { TIDY = 18 }; /* the exit status of a successor that was asked to end */

/* ---- the successor ---- */

/* Blocks the signals that ask it to end, and says so. */
static int wait_for_signals(int ready_fd, bool ends)
{
    sigset_t asked;
    int first, second;
    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM);
    sigaddset(&asked, SIGINT);
    if (sigprocmask(SIG_BLOCK, &asked, NULL) < 0 || write(ready_fd, "\n", 1) != 1)
        return 16;
    if (sigwait(&asked, &first) != 0 || sigwait(&asked, &second) != 0 || first == second)
        return 17;
    while (!ends)
        pause();
    return TIDY;
}

static int be_successor(const char *how)
{
    struct server_inherited in;
    sigset_t mask;
    if (server_inherited_take(&in) < 0 || in.ready_fd < 0 || in.count != 2)
        return 10;
    if (in.sockets[0].managed || !in.sockets[1].managed)
        return 11;
    if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0 || sigismember(&mask, SIGTERM) ||
        getenv("WATCHDOG_PID") || !getenv("NOTIFY_SOCKET"))
        return 12;
    const bool stuck = strcmp(how, "beside stuck") == 0;
    if (in.beside_stuck != stuck)
        return 15;
    if (strcmp(how, "hang") == 0)
        pause();
    if (strcmp(how, "tidy") == 0 || strcmp(how, "stubborn") == 0) {
        const int status = wait_for_signals(in.ready_fd, strcmp(how, "tidy") == 0);
        server_inherited_free(&in);
        return status;
    }
    if (strcmp(how, "orphan") == 0 && fork() == 0) {
        struct pollfd reader = { .fd = in.ready_fd }; /* until the test closes its end */
        (void)poll(&reader, 1, -1);
        _exit(0);
    }
    const bool serves = strcmp(how, "serve") == 0;
    if ((serves || stuck || strcmp(how, "ready") == 0) && write(in.ready_fd, "http://\n", 8) != 8)
        return 13;
    if (serves && close(in.ready_fd) == 0)
        pause();
    server_inherited_free(&in);
    return strcmp(how, "die") == 0 ? 14 : 0;
}

/* ---- the predecessor ---- */

static int listen_somewhere(void)
{
    struct os_socket_address address;
    const struct os_socket_options options = { 0 };
    assert_int_equal(os_socket_parse("127.0.0.1:0", &address), 0);
    int fd = os_socket_bind(&address, &options);
    assert_true(fd >= 0);
    assert_int_equal(os_socket_listen(fd, 4), 0);
    return fd;
}

static enum server_upgrade_state wait_for(struct server_upgrade *upgrade)
{
    struct pollfd end = { .fd = upgrade->ready_fd, .events = POLLIN };
    enum server_upgrade_state state;
    while ((state = server_upgrade_check(upgrade, os_clock_now_ns())) == SERVER_UPGRADE_PENDING)
        assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
    return state;
}

static void begin(struct server_upgrade *upgrade, const char *how)
{
    int fds[] = { listen_somewhere(), listen_somewhere() };
    const struct server_upgrade_descriptor descriptors[] = {
        { fds[0], SERVER_INHERITED_OWN },
        { fds[1], SERVER_INHERITED_MANAGER },
    };
    setenv("WEIR_TEST_AS", how, 1);
    setenv("NOTIFY_SOCKET", "@nobody", 1);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(server_upgrade_remember(upgrade), 0);
    unsetenv("NOTIFY_SOCKET");
    const bool beside_stuck = strcmp(how, "beside stuck") == 0;
    assert_int_equal(server_upgrade_begin(upgrade, descriptors, 2, beside_stuck), 0);
    close(fds[0]);
    close(fds[1]);
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* The master reaps what the upgrade has killed. */
static void reap_killed(struct server_upgrade *upgrade, pid_t pid)
{
    assert_int_equal(upgrade->killed, pid);
    (void)status_of(pid);
    assert_true(server_upgrade_reaped(upgrade, pid));
    assert_false(server_upgrade_reaped(upgrade, pid));
}

static void a_successor_that_writes_is_ready(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    begin(&upgrade, "ready");
    sigprocmask(SIG_SETMASK, &before, NULL);
    pid_t pid = upgrade.pid;
    assert_int_equal(server_upgrade_begin(&upgrade, NULL, 0, false), -EALREADY);
    assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_READY);
    assert_int_equal(upgrade.pid, pid);
    assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_NONE);
    assert_int_equal(status_of(pid), 0);
    server_upgrade_done(&upgrade);
}

static void a_successor_is_told_of_a_worker_that_was_given_up(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin(&upgrade, "beside stuck");
    pid_t pid = upgrade.pid;
    assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_READY);
    assert_int_equal(status_of(pid), 0);
    server_upgrade_done(&upgrade);
}

static void a_successor_that_dies_has_failed(void **state)
{
    (void)state;
    static const char *const ways[] = { "die", "quiet" };
    for (size_t i = 0; i < 2; i++) {
        struct server_upgrade upgrade;
        begin(&upgrade, ways[i]);
        pid_t pid = upgrade.pid;
        assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_FAILED);
        assert_int_equal(upgrade.pid, 0);
        assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_NONE);
        reap_killed(&upgrade, pid);
        server_upgrade_done(&upgrade);
    }
}

/* Its child holds the pipe open. The process id belongs to no process, and is not killed. */
static void a_successor_that_was_reaped_has_failed_and_is_not_killed(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin(&upgrade, "orphan");
    assert_int_equal(server_upgrade_check(&upgrade, os_clock_now_ns()), SERVER_UPGRADE_PENDING);
    assert_false(server_upgrade_reaped(&upgrade, getpid())); /* another one */
    assert_int_equal(server_upgrade_check(&upgrade, os_clock_now_ns()), SERVER_UPGRADE_PENDING);
    pid_t pid = upgrade.pid;
    assert_int_equal(status_of(pid), 0);
    assert_true(server_upgrade_reaped(&upgrade, pid));
    assert_int_equal(upgrade.pid, 0);
    assert_int_equal(upgrade.limit_ns, 0);
    assert_int_equal(server_upgrade_check(&upgrade, os_clock_now_ns()), SERVER_UPGRADE_FAILED);
    assert_int_equal(server_upgrade_check(&upgrade, os_clock_now_ns()), SERVER_UPGRADE_NONE);
    server_upgrade_done(&upgrade);
}

static void a_successor_that_takes_too_long_is_killed(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin(&upgrade, "hang");
    pid_t pid = upgrade.pid;
    assert_int_equal(server_upgrade_check(&upgrade, upgrade.limit_ns - 1), SERVER_UPGRADE_PENDING);
    assert_int_equal(server_upgrade_check(&upgrade, upgrade.limit_ns), SERVER_UPGRADE_FAILED);
    assert_int_equal(server_upgrade_begin(&upgrade, NULL, 0, false), -EBUSY);
    reap_killed(&upgrade, pid);
    server_upgrade_done(&upgrade);
}

/* Returns when the successor waits for signals. */
static void begin_waiting(struct server_upgrade *upgrade, const char *how)
{
    begin(upgrade, how);
    struct pollfd end = { .fd = upgrade->ready_fd, .events = POLLIN };
    assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
    assert_int_equal(server_upgrade_check(upgrade, os_clock_now_ns()), SERVER_UPGRADE_PENDING);
}

static void an_abandoned_successor_can_remove_its_files(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin_waiting(&upgrade, "tidy");
    pid_t pid = upgrade.pid;
    server_upgrade_abandon(&upgrade);
    assert_int_equal(upgrade.pid, 0);
    const int status = status_of(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TIDY);
    assert_true(server_upgrade_reaped(&upgrade, pid));
    server_upgrade_end(&upgrade, LIMIT_MS);
    server_upgrade_done(&upgrade);
}

static void the_end_waits_for_an_abandoned_successor(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin_waiting(&upgrade, "tidy");
    pid_t pid = upgrade.pid;
    server_upgrade_abandon(&upgrade);
    server_upgrade_end(&upgrade, LIMIT_MS);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    server_upgrade_done(&upgrade);
}

/* Only the first call finds a successor. The end still waits for it. */
static void a_successor_that_is_abandoned_twice_is_waited_for(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin_waiting(&upgrade, "tidy");
    pid_t pid = upgrade.pid;
    server_upgrade_abandon(&upgrade);
    server_upgrade_abandon(&upgrade);
    server_upgrade_end(&upgrade, LIMIT_MS);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    server_upgrade_done(&upgrade);
}

static void an_abandoned_successor_that_stays_is_killed(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    begin_waiting(&upgrade, "stubborn");
    pid_t pid = upgrade.pid;
    server_upgrade_abandon(&upgrade);
    server_upgrade_end(&upgrade, 0);
    const int status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    server_upgrade_done(&upgrade);
}

static void a_file_that_cannot_be_executed_has_failed(void **state)
{
    (void)state;
    struct server_upgrade upgrade;
    assert_int_equal(server_upgrade_remember(&upgrade), 0);
    free(upgrade.file);
    upgrade.file = strdup("/nowhere/weir");
    assert_int_equal(server_upgrade_begin(&upgrade, NULL, 0, false), 0);
    pid_t pid = upgrade.pid;
    assert_int_equal(wait_for(&upgrade), SERVER_UPGRADE_FAILED);
    reap_killed(&upgrade, pid);
    server_upgrade_done(&upgrade);
    assert_int_equal(server_upgrade_begin(&upgrade, NULL, 0, false), -ENOEXEC);
}

static void a_rotation_while_a_successor_starts_reaches_it_when_it_serves(void **state)
{
    (void)state;
    struct server_management management = { 0 };
    begin(&management.upgrade, "serve");
    pid_t pid = management.upgrade.pid;
    server_management_rotated(&management);
    struct pollfd end = { .fd = management.upgrade.ready_fd, .events = POLLIN };
    while (!server_management_has_successor(&management))
        assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
    const int status = status_of(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    server_upgrade_done(&management.upgrade);
}

int main(void)
{
    const char *how = getenv("WEIR_TEST_AS");
    if (how && server_inherited_is_upgrade())
        return be_successor(how);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successor_that_writes_is_ready),
        cmocka_unit_test(a_successor_is_told_of_a_worker_that_was_given_up),
        cmocka_unit_test(a_successor_that_dies_has_failed),
        cmocka_unit_test(a_successor_that_was_reaped_has_failed_and_is_not_killed),
        cmocka_unit_test(a_successor_that_takes_too_long_is_killed),
        cmocka_unit_test(an_abandoned_successor_can_remove_its_files),
        cmocka_unit_test(the_end_waits_for_an_abandoned_successor),
        cmocka_unit_test(a_successor_that_is_abandoned_twice_is_waited_for),
        cmocka_unit_test(an_abandoned_successor_that_stays_is_killed),
        cmocka_unit_test(a_file_that_cannot_be_executed_has_failed),
        cmocka_unit_test(a_rotation_while_a_successor_starts_reaches_it_when_it_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
