/* SPDX-License-Identifier: MIT
 *
 * The addresses that a wildcard stands for on this machine.
 */
#include "os/interface.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 32, URL_MAX = 128 };

struct reached {
    size_t count;
    char url[MOST][URL_MAX];
};

static struct reached reach(const char *text)
{
    struct os_socket_address address, each[MOST];
    struct reached reached = { 0 };
    assert_int_equal(os_socket_parse(text, &address), 0);
    reached.count = os_interface_reach(&address, each, MOST);
    for (size_t i = 0; i < reached.count && i < MOST; i++)
        assert_true(os_socket_url(&each[i], reached.url[i], URL_MAX));
    return reached;
}

static bool has(const struct reached *reached, const char *part)
{
    for (size_t i = 0; i < reached->count && i < MOST; i++)
        if (strstr(reached->url[i], part))
            return true;
    return false;
}

static void an_address_stands_for_itself(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "127.0.0.1:80", "http://127.0.0.1:80/" },
        { "192.0.2.1:80", "http://192.0.2.1:80/" },
        { "[::1]:80", "http://[::1]:80/" },
        { "unix:/run/weir.sock", "unix:/run/weir.sock" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reached reached = reach(cases[i][0]);
        assert_int_equal(reached.count, 1);
        assert_string_equal(reached.url[0], cases[i][1]);
    }
}

static void a_wildcard_stands_for_the_addresses_of_the_interfaces(void **state)
{
    (void)state;
    struct reached v4 = reach("0.0.0.0:81"), both = reach("*:82");
    assert_true(has(&v4, "http://127.0.0.1:81/"));
    assert_false(has(&v4, "0.0.0.0"));
    assert_false(has(&v4, "["));
    assert_true(has(&both, "http://127.0.0.1:82/"));
    assert_false(has(&both, "[::]"));
    assert_false(has(&both, "[fe80"));
}

static void counts_addresses_for_which_there_is_no_space(void **state)
{
    (void)state;
    struct os_socket_address wildcard, one;
    assert_int_equal(os_socket_parse("*:83", &wildcard), 0);
    assert_int_equal(os_interface_reach(&wildcard, &one, 1), reach("*:83").count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_stands_for_itself),
        cmocka_unit_test(a_wildcard_stands_for_the_addresses_of_the_interfaces),
        cmocka_unit_test(counts_addresses_for_which_there_is_no_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
