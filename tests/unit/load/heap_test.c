/* SPDX-License-Identifier: MIT */
#include "load/heap.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void gives_the_earliest_first(void **state)
{
    (void)state;
    enum { ROOM = 500, ROUNDS = 20000 };
    struct random_source random = random_start();
    struct load_heap heap;
    uint64_t at_ns[ROOM], out = 0;
    assert_int_equal(load_heap_init(&heap, ROOM), 0);
    assert_true(load_heap_next_ns(&heap) == UINT64_MAX);
    uint32_t idle[ROOM];
    size_t idle_count = ROOM;
    for (uint32_t i = 0; i < ROOM; i++)
        idle[i] = i;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (idle_count > 0 && !random_one_in(&random, 2)) {
            size_t pick = random_below(&random, idle_count);
            uint32_t user = idle[pick];
            idle[pick] = idle[--idle_count];
            at_ns[user] = out +
                          random_below(&random, 1000); /* never before the entry that was taken */
            load_heap_put(&heap, at_ns[user], user);
        } else if (heap.count > 0) {
            uint64_t next_ns = load_heap_next_ns(&heap);
            struct load_due due = load_heap_take(&heap);
            assert_true(due.at_ns == next_ns && due.at_ns == at_ns[due.user] && due.at_ns >= out);
            out = due.at_ns;
            idle[idle_count++] = due.user;
        }
        assert_int_equal(heap.count + idle_count, ROOM);
    }
    load_heap_done(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gives_the_earliest_first) };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
