/* SPDX-License-Identifier: MIT */
#include "model/wheel.h"

#include "base/check.h"

#include <stddef.h>

static void link_after(struct model_wheel_node *head, struct model_wheel_node *node)
{
    node->next = head->next;
    node->prev = head;
    head->next->prev = node;
    head->next = node;
}

void model_wheel_init(struct model_wheel *wheel, uint64_t now_ns)
{
    *wheel =
        (struct model_wheel){ .tick = now_ns / WHEEL_TICK_NS, .now_tick = now_ns / WHEEL_TICK_NS };
    for (unsigned i = 0; i < WHEEL_SLOTS; i++)
        wheel->slot[i].next = wheel->slot[i].prev = &wheel->slot[i];
}

void model_wheel_remove(struct model_wheel *wheel, struct model_wheel_node *node)
{
    if (!node->next)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
    const struct model_wheel_node *head = &wheel->slot[node->slot];
    if (head->next != head)
        return;
    uint64_t *word = &wheel->occupied[node->slot / 64];
    *word &= ~(UINT64_C(1) << node->slot % 64);
    if (*word == 0)
        wheel->words &= ~(UINT64_C(1) << node->slot / 64);
}

void model_wheel_add(struct model_wheel *wheel, struct model_wheel_node *node, uint64_t due_ns)
{
    model_wheel_remove(wheel, node);
    uint64_t tick = due_ns / WHEEL_TICK_NS + 1;
    if (tick <= wheel->now_tick)
        tick = wheel->now_tick + 1;
    if (tick > wheel->tick + WHEEL_SLOTS - 1)
        tick = wheel->tick + WHEEL_SLOTS - 1;
    node->slot = (unsigned)(tick % WHEEL_SLOTS);
    node->due_ns = tick * WHEEL_TICK_NS;
    link_after(&wheel->slot[node->slot], node);
    wheel->occupied[node->slot / 64] |= UINT64_C(1) << node->slot % 64;
    wheel->words |= UINT64_C(1) << node->slot / 64;
}

/* The first occupied slot, from `slot` around the ring. There is one. */
static unsigned first_occupied(const struct model_wheel *wheel, unsigned slot)
{
    unsigned at = slot / 64;
    const uint64_t word = wheel->occupied[at] >> slot % 64;
    if (word)
        return slot + (unsigned)__builtin_ctzll(word);
    const uint64_t behind = wheel->words & ~((UINT64_C(2) << at) - 1);
    at = (unsigned)__builtin_ctzll(behind ? behind : wheel->words);
    return at * 64 + (unsigned)__builtin_ctzll(wheel->occupied[at]);
}

uint64_t model_wheel_next_ns(const struct model_wheel *wheel)
{
    if (wheel->words == 0)
        return UINT64_MAX;
    const unsigned next = (unsigned)((wheel->tick + 1) % WHEEL_SLOTS);
    const unsigned ahead = (first_occupied(wheel, next) - next) % WHEEL_SLOTS;
    return (wheel->tick + 1 + ahead) * WHEEL_TICK_NS;
}

struct model_wheel_node *model_wheel_next(struct model_wheel *wheel, struct model_wheel_node *node)
{
    unsigned slot = node ? node->slot : 0;
    struct model_wheel_node *next = node ? node->next : wheel->slot[0].next;
    while (next == &wheel->slot[slot]) {
        if (++slot == WHEEL_SLOTS)
            return NULL;
        next = wheel->slot[slot].next;
    }
    return next;
}

struct model_wheel_node *model_wheel_expired(struct model_wheel *wheel, uint64_t now_ns)
{
    uint64_t next_ns = model_wheel_next_ns(wheel);
    if (now_ns / WHEEL_TICK_NS > wheel->now_tick)
        wheel->now_tick = now_ns / WHEEL_TICK_NS;
    if (next_ns > now_ns) { /* no timer fires up to now, so the wheel turns that far at once */
        wheel->tick = wheel->now_tick;
        return NULL;
    }
    wheel->tick = next_ns / WHEEL_TICK_NS - 1;
    struct model_wheel_node *head = &wheel->slot[next_ns / WHEEL_TICK_NS % WHEEL_SLOTS];
    struct model_wheel_node *node = head->prev;
    CHECK(node != head);
    model_wheel_remove(wheel, node);
    return node;
}
