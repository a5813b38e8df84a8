/* SPDX-License-Identifier: MIT
 *
 * A timer fires once, at most a tick late, and within the wheel's span never early.
 */
#include "model/wheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void fires_between_its_deadline_and_two_ticks_later(void **state)
{
    (void)state;
    for (uint64_t due = 1; due < 10 * SECOND; due += 77777777) {
        struct model_wheel wheel;
        struct model_wheel_node node = { 0 };
        model_wheel_init(&wheel, 0);
        model_wheel_add(&wheel, &node, due);
        assert_null(model_wheel_expired(&wheel, due));
        assert_ptr_equal(model_wheel_expired(&wheel, due + 2 * WHEEL_TICK_NS), &node);
        assert_null(model_wheel_expired(&wheel, due + 9 * SECOND));
    }
}

static void returns_the_time_of_the_next_timer(void **state)
{
    (void)state;
    struct model_wheel wheel;
    struct model_wheel_node late = { 0 };
    struct model_wheel_node soon = { 0 };
    model_wheel_init(&wheel, 100 * SECOND);
    assert_true(model_wheel_next_ns(&wheel) == UINT64_MAX);
    model_wheel_add(&wheel, &late, 109 * SECOND);
    model_wheel_add(&wheel, &soon, 101 * SECOND);
    assert_true(model_wheel_next_ns(&wheel) == soon.due_ns);
    model_wheel_remove(&wheel, &soon);
    assert_true(model_wheel_next_ns(&wheel) == late.due_ns);
    model_wheel_remove(&wheel, &late);
    model_wheel_remove(&wheel, &late);
    assert_true(model_wheel_next_ns(&wheel) == UINT64_MAX);
}

static void moves_a_node_that_is_added_again(void **state)
{
    (void)state;
    struct model_wheel wheel;
    struct model_wheel_node node = { 0 };
    model_wheel_init(&wheel, 0);
    model_wheel_add(&wheel, &node, 5 * SECOND);
    model_wheel_add(&wheel, &node, SECOND);
    assert_ptr_equal(model_wheel_expired(&wheel, 2 * SECOND), &node);
    assert_null(model_wheel_expired(&wheel, 7 * SECOND));
}

static void a_deadline_beyond_the_span_fires_at_its_end(void **state)
{
    (void)state;
    struct model_wheel wheel;
    struct model_wheel_node node = { 0 };
    model_wheel_init(&wheel, 0);
    model_wheel_add(&wheel, &node, 3600 * SECOND);
    assert_true(node.due_ns <= WHEEL_SLOTS * WHEEL_TICK_NS);
    assert_ptr_equal(model_wheel_expired(&wheel, node.due_ns), &node);
}

/* After a process was stopped for long, all timers are overdue. Each fires once, even when its
 * owner adds it again. */
static void survives_a_long_sleep(void **state)
{
    (void)state;
    struct model_wheel wheel;
    struct model_wheel_node node[50] = { { 0 } };
    model_wheel_init(&wheel, 0);
    for (unsigned i = 0; i < 50; i++)
        model_wheel_add(&wheel, &node[i], (i + 1) * SECOND / 7);
    uint64_t now = 100000 * SECOND;
    unsigned fired = 0;
    struct model_wheel_node *expired;
    while ((expired = model_wheel_expired(&wheel, now))) {
        fired++;
        assert_true(fired < 100000);
        if (fired <= 50)
            model_wheel_add(&wheel, expired, now + SECOND);
    }
    assert_true(fired >= 50);
}

/* A node that has fired is in no wheel. */
static uint64_t earliest(const struct model_wheel_node *node, unsigned count)
{
    uint64_t due_ns = UINT64_MAX;
    for (unsigned i = 0; i < count; i++)
        if (node[i].next && node[i].due_ns < due_ns)
            due_ns = node[i].due_ns;
    return due_ns;
}

/* Its owner always asks for a time that has passed. */
static void a_node_that_is_added_again_keeps_no_other_waiting(void **state)
{
    (void)state;
    struct model_wheel wheel;
    struct model_wheel_node late = { 0 }, other = { 0 }, *node;
    const uint64_t start_ns = 1000 * WHEEL_TICK_NS;
    model_wheel_init(&wheel, start_ns);
    model_wheel_add(&wheel, &late, 0);
    model_wheel_add(&wheel, &other, start_ns + 3 * WHEEL_TICK_NS);
    uint64_t now_ns = start_ns + 10 * WHEEL_TICK_NS;
    unsigned fired = 0;
    while ((node = model_wheel_expired(&wheel, now_ns)) != NULL) {
        fired++;
        assert_true(fired <= 2);
        if (node == &late)
            model_wheel_add(&wheel, &late, 0);
    }
    assert_int_equal(fired, 2);
    assert_null(other.next);
    assert_int_equal(model_wheel_next_ns(&wheel), now_ns + WHEEL_TICK_NS);
    assert_ptr_equal(model_wheel_expired(&wheel, now_ns + WHEEL_TICK_NS), &late);
}

static void many_random_deadlines_fire_in_order(void **state)
{
    (void)state;
    enum { NODES = 2000 };
    struct model_wheel wheel;
    struct model_wheel_node *node = calloc(NODES, sizeof(*node));
    assert_non_null(node);
    model_wheel_init(&wheel, 0);
    uint64_t seed = 12345;
    for (unsigned i = 0; i < NODES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        model_wheel_add(&wheel, &node[i], (seed >> 33) % (15 * SECOND));
    }
    unsigned fired = 0;
    for (uint64_t now = 0; now < 16 * SECOND; now += SECOND / 100) {
        const struct model_wheel_node *expired;
        while ((expired = model_wheel_expired(&wheel, now))) {
            fired++;
            assert_true(expired->due_ns <= now);
            assert_true(now - expired->due_ns <= SECOND / 100 + WHEEL_TICK_NS);
        }
        assert_true(model_wheel_next_ns(&wheel) == earliest(node, NODES));
    }
    assert_int_equal(fired, NODES);
    free(node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_between_its_deadline_and_two_ticks_later),
        cmocka_unit_test(returns_the_time_of_the_next_timer),
        cmocka_unit_test(moves_a_node_that_is_added_again),
        cmocka_unit_test(a_deadline_beyond_the_span_fires_at_its_end),
        cmocka_unit_test(survives_a_long_sleep),
        cmocka_unit_test(a_node_that_is_added_again_keeps_no_other_waiting),
        cmocka_unit_test(many_random_deadlines_fire_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
