/* SPDX-License-Identifier: MIT */
#include "load/heap.h"

#include <errno.h>
#include <stdlib.h>

int load_heap_init(struct load_heap *heap, size_t room)
{
    *heap = (struct load_heap){ .due = calloc(room, sizeof(*heap->due)), .room = room };
    return heap->due || room == 0 ? 0 : -ENOMEM;
}

void load_heap_done(struct load_heap *heap)
{
    free(heap->due);
    *heap = (struct load_heap){ 0 };
}

void load_heap_put(struct load_heap *heap, uint64_t at_ns, uint32_t user)
{
    CHECK(heap->count < heap->room);
    struct load_due *due = heap->due;
    size_t at = heap->count++;
    while (at > 0 && due[(at - 1) / 2].at_ns > at_ns) {
        due[at] = due[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    due[at] = (struct load_due){ at_ns, user };
}

struct load_due load_heap_take(struct load_heap *heap)
{
    CHECK(heap->count > 0);
    struct load_due *due = heap->due, first = due[0], moved = due[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->count && due[child + 1].at_ns < due[child].at_ns)
            child++;
        if (child >= heap->count || due[child].at_ns >= moved.at_ns)
            break;
        due[at] = due[child];
        at = child;
    }
    due[at] = moved;
    return first;
}
