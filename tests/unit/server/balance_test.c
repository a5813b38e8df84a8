/* SPDX-License-Identifier: MIT
 *
 * The least loaded worker that takes any gets the next connection, and equals take turns.
 */
#include "server/balance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_least_loaded_is_chosen(void **state)
{
    (void)state;
    const struct server_balance_worker workers[] = { { 5, true }, { 2, true }, { 3, true } };
    for (unsigned from = 0; from < 6; from++)
        assert_int_equal(server_balance_choose(workers, 3, from), 1);
}

static void who_takes_none_is_passed_over(void **state)
{
    (void)state;
    const struct server_balance_worker workers[] = { { 5, true }, { 2, false }, { 3, true } };
    assert_int_equal(server_balance_choose(workers, 3, 0), 2);
    const struct server_balance_worker none[] = { { 0, false }, { 0, false } };
    assert_int_equal(server_balance_choose(none, 2, 1), -1);
}

static void equals_take_turns(void **state)
{
    (void)state;
    const struct server_balance_worker workers[] = { { 4, true }, { 4, true }, { 4, true } };
    assert_int_equal(server_balance_choose(workers, 3, 1), 1);
    assert_int_equal(server_balance_choose(workers, 3, 2), 2);
    assert_int_equal(server_balance_choose(workers, 3, 3), 0);
}

static void any_number_of_connections_is_spread_evenly(void **state)
{
    (void)state;
    struct server_balance_worker workers[7];
    for (unsigned i = 0; i < 7; i++)
        workers[i] = (struct server_balance_worker){ 0, true };
    for (unsigned i = 0, from = 0; i < 100; i++) {
        int chosen = server_balance_choose(workers, 7, from);
        workers[chosen].load++;
        from = (unsigned)chosen + 1;
        for (unsigned k = 0; k < 7; k++)
            assert_in_range(workers[k].load, i / 7, i / 7 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_loaded_is_chosen),
        cmocka_unit_test(who_takes_none_is_passed_over),
        cmocka_unit_test(equals_take_turns),
        cmocka_unit_test(any_number_of_connections_is_spread_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
