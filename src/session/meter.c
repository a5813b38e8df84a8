/* SPDX-License-Identifier: MIT */
#include "session/meter.h"

#include <stdbool.h>
#include <stddef.h>

enum { MICROSECOND_NS = 1000 };

#define TIME_MASK ((UINT64_C(1) << SESSION_METER_TIME_BITS) - 1)

/* The slot of the tag; or else the one to replace, whose time is over first. */
static _Atomic uint64_t *find_slot(_Atomic uint64_t *set, uint64_t tag, uint64_t *ret_value)
{
    _Atomic uint64_t *first = NULL;
    for (unsigned i = 0; i < SESSION_METER_SLOTS; i++) {
        const uint64_t value = atomic_load_explicit(&set[i], memory_order_relaxed);
        const bool is_own = (value & ~TIME_MASK) == tag;
        if (is_own || !first || (value & TIME_MASK) < (*ret_value & TIME_MASK)) {
            first = &set[i];
            *ret_value = value;
        }
        if (is_own)
            break;
    }
    return first;
}

uint64_t session_meter_take(struct session_meter *meter, uint64_t hash, uint64_t interval_ns,
                            uint64_t burst, uint64_t now_ns)
{
    _Atomic uint64_t *set = meter->slot[hash % SESSION_METER_SETS], *slot;
    const uint64_t tag = hash & ~TIME_MASK;
    const uint64_t now = now_ns / MICROSECOND_NS, interval = interval_ns / MICROSECOND_NS;
    const uint64_t limit = now + (burst - 1) * interval;
    uint64_t value = 0, until;
    do {
        slot = find_slot(set, tag, &value);
        until = value & TIME_MASK;
        if ((value & ~TIME_MASK) != tag || until < now)
            until = now;
        if (until > limit)
            return (until - limit) * MICROSECOND_NS;
    } while (!atomic_compare_exchange_weak_explicit(slot, &value, tag | (until + interval),
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}
