/* SPDX-License-Identifier: MIT
 *
 * When users are due, of one thread: the earliest first, to the nanosecond. A
 * user is in it at most once, so it never needs more room than there are users.
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

/* `room` are never exceeded: that is checked. */
void load_heap_put(struct load_heap *heap, uint64_t at_ns, uint32_t user);

/* Takes the earliest out; there is one. */
struct load_due load_heap_take(struct load_heap *heap);

/* UINT64_MAX when it is empty. */
static inline uint64_t load_heap_next_ns(const struct load_heap *heap)
{
    return heap->count > 0 ? heap->due[0].at_ns : UINT64_MAX;
}
