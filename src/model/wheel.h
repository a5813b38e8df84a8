/* SPDX-License-Identifier: MIT
 *
 * Deadlines of many connections, for one thread. Time is cut into ticks, and a
 * ring of slots holds the connections that are due in each. A deadline that
 * moves later costs nothing: the old one fires, its owner says "later", and it
 * is put in again. So a request on a busy connection never touches the wheel.
 */
#pragma once

#include <stdint.h>

enum { WHEEL_SLOTS = 128 };
#define WHEEL_TICK_NS UINT64_C(125000000) /* deadlines are kept to this, late rather than early */

/* Embed it; zeroed is "in no wheel". */
struct model_wheel_node {
    struct model_wheel_node *next, *prev;
    uint64_t due_ns; /* when it fires; at most the wheel's span ahead */
    unsigned slot;
};

struct model_wheel {
    struct model_wheel_node slot[WHEEL_SLOTS]; /* heads of rings */
    uint64_t occupied[WHEEL_SLOTS / 64];
    uint64_t tick; /* the last one that has fired */
};

void model_wheel_init(struct model_wheel *wheel, uint64_t now_ns);

/* Puts a node in, or moves it. A deadline beyond the wheel's span fires at its
 * end, early: the owner finds that it is not due and adds it again. */
void model_wheel_add(struct model_wheel *wheel, struct model_wheel_node *node, uint64_t due_ns);

void model_wheel_remove(struct model_wheel *wheel, struct model_wheel_node *node);

/* Takes out and returns one node whose tick has passed, or NULL. Call it until
 * it returns NULL; nodes added meanwhile do not fire in the same go. */
struct model_wheel_node *model_wheel_expired(struct model_wheel *wheel, uint64_t now_ns);

/* When the first slot with anything in it fires; UINT64_MAX when all are empty. */
uint64_t model_wheel_next_ns(const struct model_wheel *wheel);
