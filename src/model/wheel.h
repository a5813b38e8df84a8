/* SPDX-License-Identifier: MIT
 *
 * The deadlines of many connections, for one thread: a timer wheel. Time is divided into ticks, and
 * a ring of slots holds the connections whose timers fire in each tick. Moving a deadline to a
 * later time costs nothing: the timer fires at the old time, and its owner adds it again. So a
 * request on a busy connection does not change the wheel.
 */
#pragma once

#include <stdint.h>

/* All timers of a tick fire together. With long ticks many connections would end at once, and the
 * other clients would wait for that. */
enum { WHEEL_SLOTS = 1024, WHEEL_WORDS = WHEEL_SLOTS / 64 };
#define WHEEL_TICK_NS UINT64_C(15625000) /* timers fire at most this much late, never early */

/* Embedded by its owner; zeroed is "in no wheel". */
struct model_wheel_node {
    struct model_wheel_node *next, *prev;
    uint64_t due_ns; /* when it fires; at most the wheel's span ahead */
    unsigned slot;
};

struct model_wheel {
    struct model_wheel_node slot[WHEEL_SLOTS]; /* heads of rings */
    uint64_t occupied[WHEEL_WORDS];            /* a bit for each slot */
    uint64_t words;                            /* a bit for each of these words that is not 0 */
    uint64_t tick;                             /* the last that has fired */
    uint64_t now_tick;                         /* what is added fires after it */
};

void model_wheel_init(struct model_wheel *wheel, uint64_t now_ns);

/* Adds a node, or moves it. A deadline beyond the wheel's span fires early, at the span's end. The
 * owner then compares its own deadline, and adds the node again. */
void model_wheel_add(struct model_wheel *wheel, struct model_wheel_node *node, uint64_t due_ns);

void model_wheel_remove(struct model_wheel *wheel, struct model_wheel_node *node);

/* The node after `node`, in any order; the first for NULL; NULL at the end. The caller may remove a
 * node once it has the next one. */
struct model_wheel_node *model_wheel_next(struct model_wheel *wheel, struct model_wheel_node *node);

/* The most timers that a loop acts on in one turn. Many deadlines fall into the same tick, such as
 * those of clients that came together. The other clients would wait for all of them. The end of a
 * connection that does not take its answer is the most expensive: the kernel frees up to 64 KiB,
 * which takes about 50 us. Each further turn costs an epoll_wait that does not wait. */
enum { WHEEL_TURN_MAX = 2 };

/* Removes and returns one node whose tick has passed, or NULL. The caller repeats it until it
 * returns NULL, or WHEEL_TURN_MAX times; model_wheel_next_ns then tells that more have passed.
 * Nodes that are added meanwhile do not fire in the same series of calls. */
struct model_wheel_node *model_wheel_expired(struct model_wheel *wheel, uint64_t now_ns);

/* The time at which the first occupied slot fires; UINT64_MAX when all are empty. */
uint64_t model_wheel_next_ns(const struct model_wheel *wheel);
