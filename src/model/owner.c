/* SPDX-License-Identifier: MIT */
#include "model/owner.h"

#include <limits.h>

/* The loop with the fewest connections of `examined` loops that are not full, or this one. This
 * loop is preferred while it has nearly as few and is not full, because a handover costs more than
 * a little unevenness. */
static struct model_loop *choose_among(struct model_loop *loop, unsigned examined)
{
    struct model_loop *emptiest = loop;
    const unsigned mine = model_owner_live(loop);
    const bool full = mine >= loop->connections_max;
    unsigned least = full ? UINT_MAX : mine;
    for (unsigned i = 0; i < examined; i++) {
        struct model_loop *each = model_loop_at(loop, loop->next_choice);
        unsigned live = model_owner_live(each);
        loop->next_choice = (loop->next_choice + 1) % loop->count;
        if (live < least && live < each->connections_max) {
            least = live;
            emptiest = each;
        }
    }
    const unsigned margin = least / 20 > 2 ? least / 20 : 2;
    return full || mine - least > margin ? emptiest : loop;
}

/* A counter of another loop is usually in the cache of another core. So a few are read for each
 * connection, in turns. All of them are read if those few loops are full. */
struct model_loop *model_owner_choose(struct model_loop *loop)
{
    const unsigned few = loop->count < OWNER_CHOICES ? loop->count : OWNER_CHOICES;
    struct model_loop *owner = choose_among(loop, few);
    return model_owner_is_full(owner) && few < loop->count ? choose_among(loop, loop->count)
                                                           : owner;
}
