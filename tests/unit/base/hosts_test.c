/* SPDX-License-Identifier: MIT
 *
 * The index of host names.
 */
#include "base/hosts.h"
#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const names[] = { "example.org",        "*.example.org", "a.example.org",
                                     "*.deep.example.org", "example.org",   "[::1]" };
enum { NAMES = sizeof(names) / sizeof(names[0]) };

struct fixture {
    struct hosts hosts;
    struct hosts_slot slots[64];
};

/* The value of a name is its place in `names`. */
static void fill(struct fixture *f)
{
    *f = (struct fixture){ 0 };
    assert_true(hosts_slots(NAMES) <= 64);
    hosts_init(&f->hosts, f->slots, NAMES);
    for (unsigned i = 0; i < NAMES; i++)
        hosts_add(&f->hosts, names[i], &names[i]);
}

/* The place of the name that covers the host; -1: none. */
static int find(const struct fixture *f, const char *host)
{
    struct guard guard;
    const struct hosts_slot *slot = hosts_find(&f->hosts, guard_text(&guard, host));
    guard_done(&guard);
    return slot ? (int)((const char *const *)slot->value - names) : -1;
}

static void finds_the_exact_name_first_and_then_the_longest_wildcard(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        int place;
    } cases[] = {
        { "example.org", 0 },
        { "EXAMPLE.Org", 0 },
        { "example.org.", 0 },
        { "b.example.org", 1 },
        { "b.c.example.org", 1 },
        { "deep.example.org", 1 },
        { "a.example.org", 2 },
        { "x.deep.example.org", 3 },
        { "x.y.deep.example.org", 3 },
        { "[::1]", 5 },
        { "", -1 },
        { ".", -1 },
        { "xexample.org", -1 },
        { "org", -1 },
        { "example.org..", -1 },
        { "example.org.evil", -1 },
    };
    struct fixture f;
    fill(&f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (find(&f, cases[i].host) != cases[i].place)
            fail_msg("%s: place %d", cases[i].host, find(&f, cases[i].host));
}

static void finds_nothing_for_a_host_that_is_too_long(void **state)
{
    (void)state;
    struct fixture f;
    char host[400];
    fill(&f);
    for (size_t len = 240; len < sizeof(host) - 1; len++) {
        memset(host, 'a', len);
        host[len] = '\0';
        memcpy(host + len - 12, ".example.org", 12);
        assert_int_equal(find(&f, host), len <= 254 ? 1 : -1);
    }
}

static void finds_nothing_in_an_empty_index(void **state)
{
    (void)state;
    struct fixture f = { 0 };
    hosts_init(&f.hosts, f.slots, 0);
    assert_int_equal(find(&f, "example.org"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_exact_name_first_and_then_the_longest_wildcard),
        cmocka_unit_test(finds_nothing_for_a_host_that_is_too_long),
        cmocka_unit_test(finds_nothing_in_an_empty_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
