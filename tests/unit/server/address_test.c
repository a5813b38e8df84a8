/* SPDX-License-Identifier: MIT
 *
 * A generation that cannot listen everywhere leaves no socket that listens and from which no worker
 * accepts.
 */
#include "server/listeners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_that_fails_leaves_the_group_as_it_was),
        cmocka_unit_test(a_group_that_listens_and_never_serves_gets_its_former_size),
    };
    return cmocka_run_group_tests_name("server/address", tests, NULL, NULL);
}
