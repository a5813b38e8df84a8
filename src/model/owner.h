/* SPDX-License-Identifier: MIT
 *
 * Chooses the loop of a process that serves a new connection, by their numbers of connections.
 * model/balance.h moves connections later. Private to model/.
 */
#pragma once

#include "model/loop.h"

enum { OWNER_CHOICES = 8 }; /* loops that are compared for a new connection */

static inline unsigned model_owner_live(const struct model_loop *loop)
{
    return atomic_load_explicit(&loop->live, memory_order_relaxed);
}

/* Whether the loop has as many connections as it may. */
static inline bool model_owner_is_full(const struct model_loop *loop)
{
    return model_owner_live(loop) >= loop->connections_max;
}

/* The loop that serves the next connection: this one, or the one with clearly fewer of the
 * OWNER_CHOICES loops whose turn it is. If these are full, any loop that is not. The thread of
 * `loop` calls it. */
struct model_loop *model_owner_choose(struct model_loop *loop);
