/* SPDX-License-Identifier: MIT
 *
 * The loop that a new connection goes to: the loops stay even, also where one of them accepts
 * all, and a connection costs as little with many loops as with few.
 */
#include "model/owner.h"

#include "model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MANY = 64, SPACE = 1000 };

static struct server server;

/* Of the server, for signals that a loop reads. There are none here. */
bool server_signal(struct server *unused, int signal)
{
    (void)unused;
    (void)signal;
    return false;
}
static struct model_loop *loops;

static void make_loops_for(unsigned count, unsigned connections)
{
    static const struct model_loop_kind kind = { .bytes = sizeof(struct model_loop) };
    server = (struct server){ .listener_sets = count, .passed.fd = -1 };
    server.connections_max = connections;
    loops = model_loops_new(&server, count, &kind);
    assert_non_null(loops);
}

static void make_loops(unsigned count)
{
    make_loops_for(count, count * SPACE);
}

static int free_loops(void **state)
{
    (void)state;
    for (unsigned i = 0; loops != NULL && i < loops->count; i++)
        assert_int_equal(pthread_mutex_destroy(&loops[i].handed_lock), 0);
    free(loops);
    loops = NULL;
    return 0;
}

static void fill_all(unsigned live)
{
    for (unsigned i = 0; i < loops->count; i++)
        atomic_store(&loops[i].live, live);
}

static void one_of_few_loops_is_found_at_once(void **state)
{
    (void)state;
    make_loops(OWNER_CHOICES);
    for (unsigned i = 0; i < OWNER_CHOICES; i++) {
        fill_all(100);
        atomic_store(&loops[i].live, 50);
        assert_ptr_equal(model_owner_choose(&loops[0]), &loops[i]);
    }
}

static void a_loop_keeps_its_connection_while_it_has_nearly_as_few(void **state)
{
    (void)state;
    make_loops(2);
    atomic_store(&loops[0].live, 102);
    atomic_store(&loops[1].live, 98);
    assert_ptr_equal(model_owner_choose(&loops[0]), &loops[0]);
    atomic_store(&loops[1].live, 90);
    assert_ptr_equal(model_owner_choose(&loops[0]), &loops[1]);
}

static void of_many_loops_a_few_are_compared_in_turns(void **state)
{
    (void)state;
    make_loops(MANY);
    fill_all(100);
    for (unsigned i = 0; i < MANY; i++)
        if (i % OWNER_CHOICES == 1)
            atomic_store(&loops[i].live, 10);
    for (unsigned i = 0; i < MANY / OWNER_CHOICES; i++)
        assert_ptr_equal(model_owner_choose(&loops[0]), &loops[i * OWNER_CHOICES + 1]);
}

static void many_loops_get_as_many_connections_if_one_accepts_all(void **state)
{
    (void)state;
    make_loops(MANY);
    unsigned least = SPACE, most = 0;
    for (unsigned i = 0; i < MANY * 100; i++)
        atomic_fetch_add(&model_owner_choose(&loops[0])->live, 1);
    for (unsigned i = 0; i < MANY; i++) {
        const unsigned live = atomic_load(&loops[i].live);
        least = live < least ? live : least;
        most = live > most ? live : most;
    }
    assert_in_range(most - least, 0, 100 / 20 + 2);
}

static void the_only_loop_with_space_is_found(void **state)
{
    (void)state;
    make_loops(MANY);
    fill_all(SPACE);
    atomic_store(&loops[50].live, SPACE - 1);
    assert_ptr_equal(model_owner_choose(&loops[0]), &loops[50]);
}

static void loops_have_no_more_space_together_than_the_server(void **state)
{
    (void)state;
    enum { FEW = 5 };
    make_loops_for(MANY, FEW);
    for (unsigned i = 0; i < FEW; i++) {
        struct model_loop *owner = model_owner_choose(&loops[MANY - 1]);
        assert_false(model_owner_is_full(owner));
        atomic_fetch_add(&owner->live, 1);
    }
    assert_true(model_owner_is_full(model_owner_choose(&loops[MANY - 1])));
}

static void a_full_loop_with_few_connections_is_not_chosen(void **state)
{
    (void)state;
    make_loops(2);
    loops[0].connections_max = 3;
    loops[1].connections_max = 2;
    atomic_store(&loops[0].live, 2);
    atomic_store(&loops[1].live, 2);
    assert_ptr_equal(model_owner_choose(&loops[0]), &loops[0]);
    assert_ptr_equal(model_owner_choose(&loops[1]), &loops[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_of_few_loops_is_found_at_once, free_loops),
        cmocka_unit_test_teardown(a_loop_keeps_its_connection_while_it_has_nearly_as_few,
                                  free_loops),
        cmocka_unit_test_teardown(of_many_loops_a_few_are_compared_in_turns, free_loops),
        cmocka_unit_test_teardown(many_loops_get_as_many_connections_if_one_accepts_all,
                                  free_loops),
        cmocka_unit_test_teardown(loops_have_no_more_space_together_than_the_server, free_loops),
        cmocka_unit_test_teardown(a_full_loop_with_few_connections_is_not_chosen, free_loops),
        cmocka_unit_test_teardown(the_only_loop_with_space_is_found, free_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
