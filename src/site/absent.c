/* SPDX-License-Identifier: MIT */
#include "site/absent.h"

#include "site/site.h"

enum { PERIOD_BITS = 24 };

static uint64_t hint_of(uint64_t hash, uint64_t now_ns)
{
    const uint64_t period = now_ns / SITE_FRESH_NS & ((UINT64_C(1) << PERIOD_BITS) - 1);
    return hash << PERIOD_BITS | period;
}

/* The hint has the low bits of the hash, so the slot is chosen by the high ones. */
static unsigned slot_of(uint64_t hash)
{
    return (unsigned)(hash >> 48) % SITE_ABSENT_SLOTS;
}

bool site_absent_likely(const struct site_absent *absent, uint64_t hash, uint64_t now_ns)
{
    return atomic_load_explicit(&absent->slots[slot_of(hash)], memory_order_relaxed) ==
           hint_of(hash, now_ns);
}

void site_absent_note(struct site_absent *absent, uint64_t hash, uint64_t now_ns)
{
    atomic_store_explicit(&absent->slots[slot_of(hash)], hint_of(hash, now_ns),
                          memory_order_relaxed);
}
