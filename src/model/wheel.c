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
    *wheel = (struct model_wheel){ .tick = now_ns / WHEEL_TICK_NS };
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
    if (head->next == head)
        wheel->occupied[node->slot / 64] &= ~(UINT64_C(1) << node->slot % 64);
}

void model_wheel_add(struct model_wheel *wheel, struct model_wheel_node *node, uint64_t due_ns)
{
    model_wheel_remove(wheel, node);
    uint64_t tick = due_ns / WHEEL_TICK_NS + 1;
    if (tick <= wheel->tick)
        tick = wheel->tick + 1;
    if (tick > wheel->tick + WHEEL_SLOTS - 1)
        tick = wheel->tick + WHEEL_SLOTS - 1;
    node->slot = (unsigned)(tick % WHEEL_SLOTS);
    node->due_ns = tick * WHEEL_TICK_NS;
    link_after(&wheel->slot[node->slot], node);
    wheel->occupied[node->slot / 64] |= UINT64_C(1) << node->slot % 64;
}

uint64_t model_wheel_next_ns(const struct model_wheel *wheel)
{
    for (unsigned ahead = 1; ahead < WHEEL_SLOTS;) {
        unsigned slot = (unsigned)((wheel->tick + ahead) % WHEEL_SLOTS);
        uint64_t word = wheel->occupied[slot / 64] >> slot % 64;
        if (word)
            return (wheel->tick + ahead + (unsigned)__builtin_ctzll(word)) * WHEEL_TICK_NS;
        ahead += 64 - slot % 64;
    }
    return UINT64_MAX;
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
    if (next_ns > now_ns) {
        /* No timer fires up to now, so the wheel may turn that far at once. */
        if (now_ns / WHEEL_TICK_NS > wheel->tick)
            wheel->tick = now_ns / WHEEL_TICK_NS;
        return NULL;
    }
    wheel->tick = next_ns / WHEEL_TICK_NS - 1;
    struct model_wheel_node *head = &wheel->slot[next_ns / WHEEL_TICK_NS % WHEEL_SLOTS];
    struct model_wheel_node *node = head->prev;
    CHECK(node != head);
    model_wheel_remove(wheel, node);
    return node;
}
