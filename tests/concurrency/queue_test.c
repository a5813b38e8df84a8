/* SPDX-License-Identifier: MIT
 *
 * Several threads put numbers into one queue, in bunches, and several take them
 * out. Nothing is lost, nothing comes twice, what one thread has put in comes out
 * in its order, and there are never more in the queue than it has room for. Meant
 * to be run under ThreadSanitizer as well.
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

enum { PRODUCERS = 3, CONSUMERS = 4, EACH = 20000, TOTAL = PRODUCERS * EACH, BUNCH = 7 };

static struct model_queue queue;
static _Atomic unsigned char seen[TOTAL];
static _Atomic unsigned inside; /* put in, since the run began */
static _Atomic unsigned taken;
static _Atomic unsigned refused;
static _Atomic unsigned wrong; /* asserting is for the main thread only */

static void *produce(void *argument)
{
    const int first = *(const int *)argument * EACH;
    int next = first;
    while (next < first + EACH) {
        int numbers[BUNCH];
        unsigned count = 0;
        while (count < BUNCH && next + (int)count < first + EACH) {
            numbers[count] = next + (int)count;
            count++;
        }
        const unsigned pushed = model_queue_push(&queue, numbers, count);
        atomic_fetch_add(&inside, pushed);
        next += (int)pushed;
        if (pushed < count) {
            atomic_fetch_add(&refused, 1);
            (void)sched_yield();
        }
    }
    return NULL;
}

static int pop(bool patient)
{
    if (!patient)
        return model_queue_try_pop(&queue);
    return model_queue_pop(&queue, os_clock_now_ns() + DURATION_SECOND / 1000);
}

static void *consume(void *argument)
{
    int last[PRODUCERS];
    memset(last, -1, sizeof(last));
    const bool patient = *(const int *)argument % 2 == 0;
    for (;;) {
        const int number = pop(patient);
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

static void run(unsigned slots)
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
    model_queue_close(&queue); /* what is in it is still taken */
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    model_queue_done(&queue);
    assert_int_equal(wrong, 0);
    assert_int_equal(taken, TOTAL);
}

static void nothing_is_lost_and_nothing_comes_twice(void **state)
{
    (void)state;
    const unsigned slots[] = { 1, 2, 64, 100000 };
    for (unsigned i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
        run(slots[i]);
    assert_true(refused > 0); /* the bound was met */
}

/* Fills it from several threads while nobody takes anything out. */
static void no_more_goes_in_than_there_is_room_for(void **state)
{
    (void)state;
    enum { SLOTS = 1000 };
    assert_int_equal(model_queue_init(&queue, SLOTS), 0);
    atomic_store(&inside, 0);
    pthread_t producers[PRODUCERS];
    int number[PRODUCERS];
    for (int i = 0; i < PRODUCERS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &number[i]), 0);
    }
    while (atomic_load(&inside) < SLOTS)
        (void)sched_yield();
    const unsigned before = atomic_load(&refused);
    while (atomic_load(&refused) < before + 100)
        (void)sched_yield();
    assert_int_equal(inside, SLOTS);
    for (unsigned left = TOTAL; left > 0;) /* lets them go */
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
        cmocka_unit_test(nothing_is_lost_and_nothing_comes_twice),
        cmocka_unit_test(no_more_goes_in_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
