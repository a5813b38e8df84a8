/* SPDX-License-Identifier: MIT
 *
 * Of many connections, the one that has been idle longest is closed first.
 */
#include "model/idle.h"

#include "model/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

enum { MANY = 500 };

static struct model_loop *loop;
static uint64_t since_ns[MANY];
static int closed; /* the last one; -1: none */
static unsigned searches;

static void search_all(struct model_loop *l)
{
    searches++;
    for (unsigned i = 0; i < MANY; i++)
        model_idle_offer(l, &since_ns[i]);
}

static uint64_t since_of(struct model_loop *l, void *who)
{
    (void)l;
    return *(uint64_t *)who;
}

static void close_it(struct model_loop *l, void *who)
{
    (void)l;
    closed = (int)((uint64_t *)who - since_ns);
    *(uint64_t *)who = MODEL_IDLE_NEVER;
}

static const struct model_idle_kind kind = { search_all, since_of, close_it };

static int begin(void **state)
{
    (void)state;
    loop = aligned_alloc(CACHE_LINE, sizeof(*loop));
    if (!loop)
        return -1;
    memset(loop, 0, sizeof(*loop));
    loop->idle.kind = &kind;
    loop->now_ns = 10000 * SECOND;
    closed = -1;
    searches = 0;
    for (unsigned i = 0; i < MANY; i++) /* 7 and MANY have no common divisor */
        since_ns[i * 7 % MANY] = (1 + i) * SECOND;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(loop);
    return 0;
}

static void the_longest_idle_is_closed_first(void **state)
{
    (void)state;
    uint64_t again_ns;
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(model_idle_close_longest(loop, &again_ns));
        assert_int_equal(closed, i * 7 % MANY);
    }
    assert_false(model_idle_close_longest(loop, &again_ns));
    assert_true(searches <= MANY / MODEL_IDLE_KEPT + 2);
}

static void one_that_was_active_since_the_search_stays(void **state)
{
    (void)state;
    uint64_t again_ns;
    assert_true(model_idle_close_longest(loop, &again_ns));
    since_ns[7] = MODEL_IDLE_NEVER;
    since_ns[14] = 9000 * SECOND;
    assert_true(model_idle_close_longest(loop, &again_ns));
    assert_int_equal(closed, 21);
}

static void one_that_has_been_idle_for_less_than_a_second_stays(void **state)
{
    (void)state;
    uint64_t again_ns;
    for (unsigned i = 0; i < MANY; i++)
        since_ns[i] = loop->now_ns;
    since_ns[3] = loop->now_ns - SECOND / 4;
    assert_false(model_idle_close_longest(loop, &again_ns));
    assert_int_equal(closed, -1);
    assert_true(again_ns == since_ns[3] + SECOND);
    loop->now_ns = again_ns;
    since_ns[5] = since_ns[3] - 1; /* a thread held it during the search */
    assert_true(model_idle_close_longest(loop, &again_ns));
    assert_int_equal(closed, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_longest_idle_is_closed_first, begin, end),
        cmocka_unit_test_setup_teardown(one_that_was_active_since_the_search_stays, begin, end),
        cmocka_unit_test_setup_teardown(one_that_has_been_idle_for_less_than_a_second_stays, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
