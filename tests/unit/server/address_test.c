/* SPDX-License-Identifier: MIT
 *
 * A generation that cannot listen everywhere leaves no socket that listens and from which no worker
 * accepts. And what is said of an address that cannot be listened at.
 */
#include "server/listeners.h"

#include "log/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct os_socket_options plain = { 0 };

static struct server_address *open_address(struct server_addresses *all)
{
    struct server_address *address = calloc(1, sizeof(*address));
    assert_non_null(address);
    assert_int_equal(os_socket_parse("127.0.0.1:0", &address->asked), 0);
    assert_int_equal(server_address_add_socket(address, os_socket_bind(&address->asked, &plain)),
                     0);
    assert_int_equal(os_socket_local(address->fd[0], &address->got), 0);
    address->next = all->first;
    all->first = address;
    return address;
}

static bool listens(int fd)
{
    int value = 0;
    socklen_t size = sizeof(value);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size), 0);
    return value != 0;
}

/* The addresses of a generation, in this order. */
static struct server_listeners use(struct server_address *first, struct server_address *second)
{
    struct server_listeners made = { .count = second ? 2 : 1,
                                     .each = calloc(2, sizeof(*made.each)) };
    assert_non_null(made.each);
    struct server_address *of[2] = { first, second };
    for (size_t i = 0; i < made.count; i++) {
        made.each[i] = (struct server_listener){ .address = of[i], .sockets = of[i]->count };
        of[i]->users++;
    }
    return made;
}

static void a_generation_that_fails_leaves_the_group_as_it_was(void **state)
{
    (void)state;
    struct server_addresses all = { 0 };
    struct server_address *kept = open_address(&all), *added = open_address(&all);
    struct server_listeners serving = use(kept, NULL);
    assert_int_equal(server_listeners_begin(&serving, "reno", 0), 0);
    server_listeners_serve(&serving);

    assert_int_equal(server_address_grow(kept, 2, plain), 0);
    struct server_listeners next = use(kept, added);
    int other = os_socket_bind(&added->got, &plain);
    assert_true(other >= 0);
    assert_int_equal(os_socket_listen(other, 1), 0);
    assert_true(server_listeners_begin(&next, "reno", 0) < 0);
    assert_true(listens(kept->fd[0]));
    assert_false(listens(kept->fd[1]));

    server_listeners_close(&next, &all);
    assert_int_equal(kept->count, 1);
    assert_true(listens(kept->fd[0]));
    (void)close(other);
    server_listeners_close(&serving, &all);
    assert_null(all.first);
}

static void a_group_that_listens_and_never_serves_gets_its_former_size(void **state)
{
    (void)state;
    struct server_addresses all = { 0 };
    struct server_address *address = open_address(&all);
    struct server_listeners serving = use(address, NULL);
    assert_int_equal(server_listeners_begin(&serving, "reno", 0), 0);
    server_listeners_serve(&serving);

    assert_int_equal(server_address_grow(address, 3, plain), 0);
    struct server_listeners next = use(address, NULL);
    assert_int_equal(server_listeners_begin(&next, "reno", 0), 0);
    assert_int_equal(address->listening, 3);
    server_listeners_close(&next, &all); /* its workers did not begin */
    assert_int_equal(address->count, 1);
    assert_int_equal(address->listening, 1);

    assert_int_equal(server_address_grow(address, 2, plain), 0);
    next = use(address, NULL);
    assert_int_equal(server_listeners_begin(&next, "reno", 0), 0);
    server_listeners_serve(&next);
    server_listeners_close(&serving, &all);
    assert_int_equal(address->listening, 2);
    server_listeners_close(&next, &all);
    assert_null(all.first);
}

static void keep_line(void *line, const char *text)
{
    (void)snprintf(line, LOG_ERROR_LINE_MAX, "%s", text);
}

static void a_cure_fits_the_kind_of_the_address(void **state)
{
    (void)state;
    static const struct {
        const char *where;
        int error;
        const char *cure;
    } each[] = {
        { "unix:/srv/x", -EACCES, "; give this user the right to make the socket there, or" },
        { "unix:/srv/x", -EADDRINUSE, "stop it, or choose another path" },
        { "127.0.0.1:80", -EACCES, "has given the privilege up: restart it" },
        { "127.0.0.1:80", -EADDRINUSE, "stop it, or choose another port" },
    };
    for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        char line[LOG_ERROR_LINE_MAX] = "";
        log_error_divert(keep_line, line);
        assert_int_equal(server_address_report(NULL, each[i].where, false, each[i].error),
                         each[i].error);
        log_error_divert(NULL, NULL);
        assert_non_null(strstr(line, each[i].cure));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_that_fails_leaves_the_group_as_it_was),
        cmocka_unit_test(a_group_that_listens_and_never_serves_gets_its_former_size),
        cmocka_unit_test(a_cure_fits_the_kind_of_the_address),
    };
    return cmocka_run_group_tests_name("server/address", tests, NULL, NULL);
}
