/* SPDX-License-Identifier: MIT
 *
 * The times at which the users of one thread are due, the earliest first. A user is in the heap at
 * most once, so the heap never needs more places than there are users.
 */
#pragma once

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>

struct load_due {
    uint64_t at_ns;
    uint32_t user;
};

struct load_heap {
    struct load_due *due;
    size_t count, room;
};

/* 0 or -ENOMEM. */
MUST_USE int load_heap_init(struct load_heap *heap, size_t room);
void load_heap_done(struct load_heap *heap);

/* There are fewer than `room`: a CHECK. */
void load_heap_put(struct load_heap *heap, uint64_t at_ns, uint32_t user);

/* Removes the earliest; there is one. */
struct load_due load_heap_take(struct load_heap *heap);

/* The earliest time; UINT64_MAX: the heap is empty. */
static inline uint64_t load_heap_next_ns(const struct load_heap *heap)
{
    return heap->count > 0 ? heap->due[0].at_ns : UINT64_MAX;
}
