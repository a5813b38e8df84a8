/* SPDX-License-Identifier: MIT
 *
 * The protocol of the service manager; a datagram socket plays the manager.
 */
#include "os/notify.h"

#include "os/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A manager that listens at `name` (with @: abstract), which the environment then says. */
static int listen_at(const char *name)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    memcpy(un.sun_path, name, len);
    if (name[0] == '@')
        un.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] != '@'));
    assert_int_equal(bind(fd, (const struct sockaddr *)&un, size), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
    return fd;
}

static void assert_heard(int fd, const char *expected)
{
    char text[1024];
    ssize_t len = recv(fd, text, sizeof(text) - 1, 0);
    assert_true(len >= 0);
    text[len] = '\0';
    assert_string_equal(text, expected);
}

static void sends_to_a_path(void **state)
{
    (void)state;
    char folder[] = "/tmp/notify_test.XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s", folder);
    int manager = listen_at(path);
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    assert_int_equal(os_notify_send(&notify, "READY=1\nSTATUS=%s", "serving"), 0);
    assert_heard(manager, "READY=1\nSTATUS=serving");
    close(manager);
    assert_int_equal(os_notify_send(&notify, "STOPPING=1"), -ECONNREFUSED);
    os_notify_close(&notify);
    unlink(path);
    rmdir(folder);
}

static void sends_to_an_abstract_name(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "@weir/notify_test/%d", (int)getpid());
    int manager = listen_at(name);
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    assert_int_equal(os_notify_send(&notify, "MAINPID=%d", 7), 0);
    assert_heard(manager, "MAINPID=7");
    os_notify_close(&notify);
    close(manager);
}

static void a_reload_message_has_its_time(void **state)
{
    (void)state;
    int manager = listen_at("@weir/notify_test/reload");
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    uint64_t before = os_clock_now_ns() / 1000;
    assert_int_equal(os_notify_reloading(&notify), 0);
    char text[128] = "";
    assert_true(recv(manager, text, sizeof(text) - 1, 0) > 0);
    unsigned long long usec = 0;
    assert_int_equal(sscanf(text, "RELOADING=1\nMONOTONIC_USEC=%llu", &usec), 1);
    assert_in_range(usec, before, os_clock_now_ns() / 1000);
    os_notify_close(&notify);
    close(manager);
}

static void removes_its_variables_from_the_environment(void **state)
{
    (void)state;
    int manager = listen_at("@weir/notify_test/environment");
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    os_notify_close(&notify);
    close(manager);
}

static void the_watchdog_is_for_the_process_that_it_names(void **state)
{
    (void)state;
    char own[16];
    snprintf(own, sizeof(own), "%d", (int)getpid());
    const struct {
        const char *usec, *pid;
        uint64_t expected_ns;
    } cases[] = {
        { "3000000", NULL, UINT64_C(3000000000) },
        { "3000000", own, UINT64_C(3000000000) },
        { "3000000", "1", 0 },
        { "3000000", "", 0 },
        { NULL, own, 0 },
        { "soon", own, 0 },
        { "-1", own, 0 },
        { "99999999999999999999", own, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
        if (cases[i].usec)
            setenv("WATCHDOG_USEC", cases[i].usec, 1);
        if (cases[i].pid)
            setenv("WATCHDOG_PID", cases[i].pid, 1);
        struct os_notify notify;
        assert_int_equal(os_notify_open(&notify), 0);
        assert_int_equal(notify.watchdog_ns, cases[i].expected_ns);
        os_notify_close(&notify);
    }
}

static void without_a_manager_nothing_is_sent(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "3000000", 1);
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    assert_int_equal(notify.fd, -1);
    assert_int_equal(notify.watchdog_ns, 0);
    assert_int_equal(os_notify_send(&notify, "READY=1"), 0);
    os_notify_close(&notify);
}

static void refuses_an_invalid_address(void **state)
{
    (void)state;
    char path[200];
    memset(path, 'p', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    const struct {
        const char *name;
        int expected;
    } cases[] = {
        { "relative/path", -EAFNOSUPPORT },
        { "vsock:2:1234", -EAFNOSUPPORT },
        { "@", -EAFNOSUPPORT },
        { path, -ENAMETOOLONG },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        setenv("NOTIFY_SOCKET", cases[i].name, 1);
        struct os_notify notify;
        assert_int_equal(os_notify_open(&notify), cases[i].expected);
        assert_int_equal(notify.fd, -1);
        assert_null(getenv("NOTIFY_SOCKET"));
    }
}

static void refuses_a_message_that_is_too_long(void **state)
{
    (void)state;
    int manager = listen_at("@weir/notify_test/long");
    char text[OS_NOTIFY_MAX + 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct os_notify notify;
    assert_int_equal(os_notify_open(&notify), 0);
    assert_int_equal(os_notify_send(&notify, "%s", text), -EMSGSIZE);
    assert_int_equal(os_notify_send(&notify, "%s", text + 1), 0);
    assert_heard(manager, text + 1);
    os_notify_close(&notify);
    close(manager);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_to_a_path),
        cmocka_unit_test(sends_to_an_abstract_name),
        cmocka_unit_test(a_reload_message_has_its_time),
        cmocka_unit_test(removes_its_variables_from_the_environment),
        cmocka_unit_test(the_watchdog_is_for_the_process_that_it_names),
        cmocka_unit_test(without_a_manager_nothing_is_sent),
        cmocka_unit_test(refuses_an_invalid_address),
        cmocka_unit_test(refuses_a_message_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
