/* SPDX-License-Identifier: MIT
 *
 * Hosts that mean this machine, and those that only look so.
 */
#include "page/host.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_local(const char *const *hosts, bool expected)
{
    for (; *hosts; hosts++) {
        struct guard guard;
        bool local = page_host_is_local(guard_text(&guard, *hosts));
        guard_done(&guard);
        if (local != expected)
            fail_msg("`%s`", *hosts);
    }
}

static void knows_the_names_of_this_machine(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "localhost", "LocalHost", "127.0.0.1", "127.255.255.255", "[::1]", "[0:0:0:0:0:0:0:1]", NULL
    };
    assert_local(hosts, true);
}

static void takes_nothing_else_for_one(void **state)
{
    (void)state;
    static const char *const hosts[] = {
        "",
        "localhost.",
        "localhost.example",
        "example",
        "126.0.0.1",
        "127.0.0",
        "127.0.0.1.example",
        "127.1",
        "0.0.0.0",
        "::1",
        "[127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::]",
        "[::1",
        "::1]",
        "[]",
        "[",
        "[::1%lo]",
        "10.0.0.1",
        "0127.0.0.1",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0001]",
        NULL,
    };
    assert_local(hosts, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_names_of_this_machine),
        cmocka_unit_test(takes_nothing_else_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
