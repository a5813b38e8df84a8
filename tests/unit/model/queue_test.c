/* SPDX-License-Identifier: MIT
 *
 * The queue returns descriptors in the order in which it took them, and takes no more than it has
 * slots for.
 */
#include "base/duration.h"
#include "model/queue.h"

#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned push(struct model_queue *queue, int fd)
{
    return model_queue_push(queue, &fd, 1);
}

static void is_first_in_first_out(void **state)
{
    (void)state;
    struct model_queue queue;
    assert_int_equal(model_queue_init(&queue, 5), 0);
    int next_in = 0;
    int next_out = 0;
    for (unsigned turn = 0; turn < 100; turn++) { /* goes around the ring, filled to every level */
        unsigned level = turn % 5 + 1;
        for (unsigned i = 0; i < level; i++)
            assert_int_equal(push(&queue, next_in++), 1);
        for (unsigned i = 0; i < level; i++)
            assert_int_equal(model_queue_try_pop(&queue), next_out++);
        assert_int_equal(model_queue_try_pop(&queue), MODEL_QUEUE_EMPTY);
    }
    model_queue_done(&queue);
}

static void takes_as_many_as_it_has_slots_for(void **state)
{
    (void)state;
    const int fds[] = { 10, 11, 12, 13, 14, 15, 16 };
    struct model_queue queue;
    assert_int_equal(model_queue_init(&queue, 4), 0);
    assert_int_equal(model_queue_push(&queue, fds, 3), 3);
    assert_int_equal(model_queue_push(&queue, fds + 3, 4), 1);
    assert_int_equal(model_queue_push(&queue, fds + 4, 1), 0);
    assert_int_equal(model_queue_try_pop(&queue), 10);
    assert_int_equal(model_queue_push(&queue, fds + 4, 3), 1);
    for (int fd = 11; fd <= 14; fd++)
        assert_int_equal(model_queue_try_pop(&queue), fd);
    assert_int_equal(model_queue_push(&queue, fds, 0), 0);
    assert_int_equal(model_queue_try_pop(&queue), MODEL_QUEUE_EMPTY);
    model_queue_done(&queue);
}

static bool is_below(const void *limit, int fd)
{
    return fd < *(const int *)limit;
}

static void leaves_the_oldest_descriptor_until_it_is_due(void **state)
{
    (void)state;
    const int fds[] = { 10, 5 };
    int limit = 10;
    struct model_queue queue;
    assert_int_equal(model_queue_init(&queue, 2), 0);
    assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), MODEL_QUEUE_EMPTY);
    assert_int_equal(model_queue_push(&queue, fds, 2), 2);
    for (unsigned i = 0; i < 5; i++) /* the younger one is not passed */
        assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), MODEL_QUEUE_EMPTY);
    assert_int_equal(push(&queue, 20), 0);
    limit = 11;
    assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), 10);
    assert_int_equal(push(&queue, 20), 1);
    assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), 5);
    assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), MODEL_QUEUE_EMPTY);
    assert_int_equal(model_queue_try_pop(&queue), 20);
    model_queue_close(&queue);
    assert_int_equal(model_queue_try_pop_due(&queue, is_below, &limit), MODEL_QUEUE_CLOSED);
    model_queue_done(&queue);
}

static void waits_until_the_given_time(void **state)
{
    (void)state;
    struct model_queue queue;
    assert_int_equal(model_queue_init(&queue, 1), 0);
    const uint64_t until_ns = os_clock_now_ns() + DURATION_SECOND / 50;
    assert_int_equal(model_queue_pop(&queue, until_ns), MODEL_QUEUE_EMPTY);
    assert_true(os_clock_now_ns() >= until_ns);
    assert_int_equal(model_queue_pop(&queue, 1), MODEL_QUEUE_EMPTY); /* a time in the past */
    assert_int_equal(push(&queue, 3), 1);
    assert_int_equal(model_queue_pop(&queue, 1), 3);
    model_queue_done(&queue);
}

static void a_closed_queue_returns_what_is_in_it(void **state)
{
    (void)state;
    const int fds[] = { 7, 8 };
    struct model_queue queue;
    assert_int_equal(model_queue_init(&queue, 3), 0);
    assert_int_equal(model_queue_push(&queue, fds, 2), 2);
    model_queue_close(&queue);
    model_queue_close(&queue);
    assert_int_equal(push(&queue, 9), 0);
    assert_int_equal(model_queue_pop(&queue, UINT64_MAX), 7);
    assert_int_equal(model_queue_try_pop(&queue), 8);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(model_queue_pop(&queue, UINT64_MAX), MODEL_QUEUE_CLOSED);
    assert_int_equal(model_queue_try_pop(&queue), MODEL_QUEUE_CLOSED);
    model_queue_done(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_first_in_first_out),
        cmocka_unit_test(takes_as_many_as_it_has_slots_for),
        cmocka_unit_test(leaves_the_oldest_descriptor_until_it_is_due),
        cmocka_unit_test(waits_until_the_given_time),
        cmocka_unit_test(a_closed_queue_returns_what_is_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
