/* SPDX-License-Identifier: MIT
 *
 * Several producers push numbers into one queue, several at a time, and several consumers take
 * them. None is lost and none is taken twice. The numbers of one producer stay in their order. The
 * queue never holds more than it has slots for. Runs under ThreadSanitizer as well.
 */
#include "base/duration.h"
#include "model/queue.h"

#include "os/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>

enum { PRODUCERS = 3, CONSUMERS = 4, EACH = 20000, TOTAL = PRODUCERS * EACH, BATCH = 7 };

static struct model_queue queue;
static _Atomic unsigned char seen[TOTAL];
static _Atomic unsigned pushed_total;
static _Atomic unsigned taken;
static _Atomic unsigned refused;
static _Atomic unsigned wrong; /* only the main thread may assert */

static void *produce(void *argument)
{
    const int first = *(const int *)argument * EACH;
    int next = first;
    while (next < first + EACH) {
        int numbers[BATCH];
        unsigned count = 0;
        while (count < BATCH && next + (int)count < first + EACH) {
            numbers[count] = next + (int)count;
            count++;
        }
        const unsigned pushed = model_queue_push(&queue, numbers, count);
        atomic_fetch_add(&pushed_total, pushed);
        next += (int)pushed;
        if (pushed < count) {
            atomic_fetch_add(&refused, 1);
            (void)sched_yield();
        }
    }
    return NULL;
}

static int pop_number(bool waits)
{
    if (!waits)
        return model_queue_try_pop(&queue);
    return model_queue_pop(&queue, os_clock_now_ns() + DURATION_SECOND / 1000);
}

static void *consume(void *argument)
{
    int last[PRODUCERS];
    memset(last, -1, sizeof(last));
    const bool waits = *(const int *)argument % 2 == 0;
    for (;;) {
        const int number = pop_number(waits);
        if (number == MODEL_QUEUE_CLOSED)
            return NULL;
        if (number == MODEL_QUEUE_EMPTY) {
            (void)sched_yield();
            continue;
        }
        if (number < 0 || number >= TOTAL || atomic_fetch_add(&seen[number], 1) != 0 ||
            number <= last[number / EACH]) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        last[number / EACH] = number;
        atomic_fetch_add(&taken, 1);
    }
}

static void push_and_take_all(unsigned slots)
{
    memset(seen, 0, sizeof(seen));
    atomic_store(&taken, 0);
    assert_int_equal(model_queue_init(&queue, slots), 0);
    pthread_t producers[PRODUCERS];
    pthread_t consumers[CONSUMERS];
    int number[PRODUCERS > CONSUMERS ? PRODUCERS : CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&consumers[i], NULL, consume, &number[i]), 0);
    }
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &number[i]), 0);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    model_queue_close(&queue); /* the consumers still take what is in it */
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    model_queue_done(&queue);
    assert_int_equal(wrong, 0);
    assert_int_equal(taken, TOTAL);
}

static void no_number_is_lost_or_taken_twice(void **state)
{
    (void)state;
    const unsigned slots[] = { 1, 2, 64, 100000 };
    for (unsigned i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        push_and_take_all(slots[i]);
    assert_true(refused > 0); /* the queue has been full */
}

/* Several threads fill the queue while no consumer runs. */
static void takes_no_more_than_it_has_slots_for(void **state)
{
    (void)state;
    enum { SLOTS = 1000 };
    assert_int_equal(model_queue_init(&queue, SLOTS), 0);
    atomic_store(&pushed_total, 0);
    pthread_t producers[PRODUCERS];
    int number[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &number[i]), 0);
    }
    while (atomic_load(&pushed_total) < SLOTS)
        (void)sched_yield();
    const unsigned before = atomic_load(&refused);
    while (atomic_load(&refused) < before + 100)
        (void)sched_yield();
    assert_int_equal(pushed_total, SLOTS);
    for (unsigned left = TOTAL; left > 0;) /* lets the producers finish */
        if (model_queue_try_pop(&queue) >= 0)
            left--;
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    assert_int_equal(model_queue_try_pop(&queue), MODEL_QUEUE_EMPTY);
    model_queue_done(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_is_lost_or_taken_twice),
        cmocka_unit_test(takes_no_more_than_it_has_slots_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
