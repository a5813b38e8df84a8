/* SPDX-License-Identifier: MIT
 *
 * Addresses as people write them, and listeners on them.
 */
#include "os/socket.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void parses_addresses_and_formats_their_urls(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "8080", "http://127.0.0.1:8080/" },
        { "127.0.0.1:0", "http://127.0.0.1:0/" },
        { "localhost:80", "http://127.0.0.1:80/" },
        { "10.1.2.3:65535", "http://10.1.2.3:65535/" },
        { "[::1]:8080", "http://[::1]:8080/" },
        { "*:80", "http://[::]:80/" },
        { "unix:/run/weir.sock", "unix:/run/weir.sock" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct os_socket_address address;
        char url[128];
        assert_int_equal(os_socket_parse(cases[i][0], &address), 0);
        assert_true(os_socket_url(&address, url, sizeof(url)));
        assert_string_equal(url, cases[i][1]);
    }
}

static void refuses_text_that_is_no_address(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        ":",
        "80a",
        "-1",
        "65536",
        "127.0.0.1:",
        "::1:8080",
        "[::1]",
        "[::1:80",
        "[]:80",
        "example.org:80",
        "1.2.3:80",
        "1.2.3.4.5:80",
        "unix:",
        " 80",
        "127.0.0.1:+80",
        "[127.0.0.1]:80",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct os_socket_address address;
        assert_int_equal(os_socket_parse(cases[i], &address), -EINVAL);
    }
    char path[200] = "unix:";
    memset(path + 5, 'p', sizeof(path) - 6);
    path[sizeof(path) - 1] = '\0';
    struct os_socket_address address;
    assert_int_equal(os_socket_parse(path, &address), -ENAMETOOLONG);
}

static int listen_on(const char *text, bool share)
{
    struct os_socket_address address;
    assert_int_equal(os_socket_parse(text, &address), 0);
    const struct os_socket_options options = { .share_port = share };
    int fd = os_socket_bind(&address, &options);
    int rc = fd < 0 ? fd : os_socket_listen(fd, 16);
    if (fd >= 0 && rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

static void reports_a_port_in_use_and_can_share_one(void **state)
{
    (void)state;
    struct os_socket_address got;
    char text[32];
    int first = listen_on("127.0.0.1:0", true);
    assert_true(first >= 0);
    assert_int_equal(os_socket_local(first, &got), 0);
    char url[64];
    assert_true(os_socket_url(&got, url, sizeof(url)));
    int port = atoi(strrchr(url, ':') + 1);
    snprintf(text, sizeof(text), "127.0.0.1:%d", port);
    assert_int_equal(listen_on(text, false), -EADDRINUSE);
    int second = listen_on(text, true);
    assert_true(second >= 0);
    os_file_close(first);
    os_file_close(second);
}

static void replaces_a_stale_socket_file_and_keeps_one_in_use(void **state)
{
    (void)state;
    char folder[] = "/tmp/socket_test.XXXXXX";
    assert_non_null(mkdtemp(folder));
    char text[64];
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    int first = listen_on(text, false);
    assert_true(first >= 0);
    assert_int_equal(listen_on(text, false), -EADDRINUSE);
    os_file_close(first);
    int second = listen_on(text, false);
    assert_true(second >= 0);
    os_file_close(second);
    unlink(text + 5);
    rmdir(folder);
}

static void keeps_a_file_that_is_no_socket(void **state)
{
    (void)state;
    struct stat file;
    char folder[] = "/tmp/socket_test.XXXXXX", text[64];
    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof(text), "unix:%s/s", folder);
    const char *path = text + 5;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    os_file_close(fd);
    assert_int_equal(listen_on(text, false), -ENOTSOCK);
    assert_int_equal(os_socket_unlink(path, NULL), -ENOTSOCK);
    assert_int_equal(lstat(path, &file), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(listen_on(text, false), -ENOTSOCK);
    assert_int_equal(unlink(path), 0);

    char real[64]; /* a link to a stale socket stays, too */
    snprintf(real, sizeof(real), "unix:%s/real", folder);
    os_file_close(listen_on(real, false));
    assert_int_equal(symlink("real", path), 0);
    assert_int_equal(listen_on(text, false), -ENOTSOCK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(os_socket_unlink(real + 5, NULL), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void mends_a_listener_that_another_holder_has_shut(void **state)
{
    (void)state;
    const struct os_socket_options options = { 0 };
    const struct linger reset = { .l_onoff = 1 };
    struct os_socket_address address, peer;
    assert_int_equal(os_socket_parse("127.0.0.1:0", &address), 0);
    int fd = os_socket_bind(&address, &options);
    assert_true(fd >= 0);
    assert_int_equal(os_socket_listen(fd, 8), 0);
    assert_int_equal(os_socket_local(fd, &address), 0);
    assert_int_equal(os_socket_mend(fd, &address, 8), 0);
    assert_int_equal(shutdown(fd, SHUT_RD), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_RDWR), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    assert_int_equal(os_socket_mend(fd, &address, 8), 1);
    assert_int_equal(os_socket_accept(fd, &peer), -EAGAIN);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *to = (const struct sockaddr *)&address.storage;
    assert_int_equal(connect(client, to, address.len), 0);
    int accepted = os_socket_accept(fd, &peer);
    assert_true(accepted >= 0);
    struct linger linger = reset;
    socklen_t len = sizeof(linger);
    assert_int_equal(getsockopt(accepted, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
    assert_int_equal(linger.l_onoff, 0);
    close(accepted);
    close(client);
    close(fd);
}

static void accepts_waiting_connections_and_reports_when_none_waits(void **state)
{
    (void)state;
    struct os_socket_address address;
    int listener = listen_on("127.0.0.1:0", false);
    assert_true(listener >= 0);
    struct os_socket_address peer;
    assert_int_equal(os_socket_accept(listener, &peer), -EAGAIN);
    assert_int_equal(os_socket_local(listener, &address), 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&address.storage, address.len), 0);
    int fd = os_socket_accept(listener, &peer);
    assert_true(fd >= 0);
    assert_int_equal(peer.storage.ss_family, AF_INET);
    os_file_close(fd);
    os_file_close(client);
    os_file_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_addresses_and_formats_their_urls),
        cmocka_unit_test(refuses_text_that_is_no_address),
        cmocka_unit_test(reports_a_port_in_use_and_can_share_one),
        cmocka_unit_test(replaces_a_stale_socket_file_and_keeps_one_in_use),
        cmocka_unit_test(keeps_a_file_that_is_no_socket),
        cmocka_unit_test(mends_a_listener_that_another_holder_has_shut),
        cmocka_unit_test(accepts_waiting_connections_and_reports_when_none_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
