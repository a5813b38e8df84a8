/* SPDX-License-Identifier: MIT
 *
 * The writers of the head. Its sequence is odd while a master writes. In an upgrade two masters
 * take turns. A turn is short; a master that has died in its own is not waited for.
 *
 * Private to stats/.
 */
#pragma once

#include "stats/segment.h"

#include <sched.h>

enum { STATS_SEQUENCE_TRIES = 1000 };

/* The fence keeps later stores behind the odd number. */
static inline void stats_sequence_begin(struct stats_header *header)
{
    for (unsigned tries = 0; tries < STATS_SEQUENCE_TRIES; tries++) {
        uint32_t even = atomic_load_explicit(&header->sequence, memory_order_relaxed) & ~1U;
        if (atomic_compare_exchange_strong(&header->sequence, &even, even + 1))
            break;
        (void)sched_yield();
    }
    atomic_thread_fence(memory_order_release);
}

static inline void stats_sequence_end(struct stats_header *header)
{
    uint32_t odd = atomic_load_explicit(&header->sequence, memory_order_relaxed) | 1U;
    (void)atomic_compare_exchange_strong(&header->sequence, &odd, odd + 1);
}
