/* SPDX-License-Identifier: MIT
 *
 * Balances the reactors of a process after their connections have aged. New connections go to the
 * reactor with the fewest. But connections end at any time, and the busy ones may all be on one
 * reactor. So each reactor measures its utilisation: the part of its time in which it works. It
 * hands connections over if it is clearly busier than the idlest reactor, or has clearly more
 * connections than the emptiest.
 *
 * Which connections: to share load, those with events while the reactor hands over, so that the
 * busiest go first, and never the only one. To share numbers, any connections, but while a reactor
 * is busy only quiet ones, which bring no load along.
 *
 * Four rules prevent oscillation. The unevenness has to last. One pass hands over half of it, to a
 * reactor that no other reactor hands to. A connection stays for a while where it arrived. A
 * reactor that gets connections back waits longer each time.
 *
 * A request pays nothing for it. A reactor compares itself with the others ten times a second, and
 * reads the clock once more in about a hundred of the turns between.
 */
#pragma once

#include "os/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct model_connection;
struct model_reactor;

/* Part of a reactor. A window is a tenth of a second; windows are numbered by the clock. */
struct model_balance {
    /* Read by the other reactors. */
    _Atomic uint64_t load;    /* window number << 16 | utilisation in that window, in permille */
    _Atomic bool waiting;     /* for events, now */
    _Atomic uint64_t claimed; /* the window until which another reactor hands over to this one.
                                 Any reactor writes it */

    /* The rest is used by the reactor alone. */
    uint64_t window_ns;        /* when the present window began */
    unsigned turns;            /* in this window */
    unsigned stride;           /* one turn of this many is measured */
    unsigned left;             /* turns until the next measured one; 0: this one is measured */
    uint64_t work_ns;          /* of the measured turn, without the wait that ends it */
    uint64_t busy_ns, span_ns; /* of the measured turns of this window: work, and all */
    uint64_t woke_ns;          /* when this turn began */
    unsigned uneven;           /* windows in a row with a clear unevenness */
    unsigned pause;            /* windows to wait after handing over */
    uint64_t again;            /* the first window in which it may hand over again */
    bool received;             /* it got a connection from another reactor since it handed over */
    unsigned slot;             /* of the wheel, where the next search begins */

    struct model_reactor *to; /* hands over to it, to share load; NULL: not now */
    unsigned share;           /* of the connections with events, in permille */
    unsigned seen, given;     /* connections with events; connections handed over */
};

void model_balance_init(struct model_balance *b, uint64_t now_ns);

/* Before and after a wait. */
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

/* Once for each turn, between two waits. True: the reactor offers the connections that had
 * events. */
bool model_balance_turn(struct model_reactor *r);

/* Hands the connection over if it should move. The connection may be closed already. */
void model_balance_offer(struct model_reactor *r, struct model_connection *c);
