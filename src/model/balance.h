/* SPDX-License-Identifier: MIT
 *
 * Evens out the loops of a process after their connections have aged. New ones
 * go to the loop with the fewest; but connections end where they please, and the
 * busy ones may all live on one loop. So each loop measures which part of its
 * time it works, and one that works clearly more than the idlest, or has clearly
 * more connections than the emptiest, hands some of them over.
 *
 * Which ones: for load, of those that the loop hears from while it hands over,
 * so that the busiest come first, and never the only one. For number, as they
 * come; but while a loop is busy only quiet ones, which bring no load along.
 *
 * That nothing swings: the unevenness has to last; half of it is handed over at a
 * time, to a loop that nobody else hands to; a connection stays for a while where
 * it came to; and a loop that gets some back waits longer each time.
 *
 * A request pays nothing for it: a loop that has others beside it looks at them
 * ten times a second, and reads the clock for some of its turns only, a hundred or
 * so between two such looks.
 */
#pragma once

#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct model_connection;
struct model_reactor;

/* A loop's own. */
struct model_balance {
    /* Read by the other loops. */
    _Atomic uint64_t load;    /* window number << 16 | part of that window at work, in permille */
    _Atomic bool waiting;     /* for events, at this moment */
    _Atomic uint64_t claimed; /* the window until which one other loop hands over to this one.
                                 Written by any */

    /* The rest is the loop's alone. */
    uint64_t window_ns;        /* when the present window began */
    unsigned turns;            /* since then */
    unsigned stride;           /* every so many turns one is measured */
    unsigned left;             /* turns until that; 0: this one was */
    uint64_t work_ns;          /* of that turn, without the wait that ends it */
    uint64_t busy_ns, span_ns; /* of the turns measured in this window: work, and all */
    uint64_t woke_ns;          /* when this turn began */
    unsigned uneven;           /* windows in a row that found it so */
    unsigned pause;            /* windows, after handing over */
    uint64_t again;            /* no handing over before this window */
    bool received;             /* a connection from another loop, since it last handed over */
    unsigned slot;             /* of the wheel, where the next search begins */

    struct model_reactor *to; /* handing over for load: to whom; NULL: not at present */
    unsigned share;           /* of the connections heard from, in permille */
    unsigned heard, given;
};

void model_balance_init(struct model_balance *b, uint64_t now_ns);

/* Around a wait. */
static inline void model_balance_rest(struct model_balance *b)
{
    if (--b->left == 0)
        b->work_ns = os_clock_now_ns() - b->woke_ns;
    atomic_store_explicit(&b->waiting, true, memory_order_relaxed);
}

static inline void model_balance_resume(struct model_balance *b)
{
    atomic_store_explicit(&b->waiting, false, memory_order_relaxed);
}

/* Once for each turn, between two waits. Whether the loop is to offer the connections that it has
 * heard from. */
bool model_balance_turn(struct model_reactor *r);

/* Hands the connection over if it is one that should go. It need not be there any more. */
void model_balance_offer(struct model_reactor *r, struct model_connection *c);
