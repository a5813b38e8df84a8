/* SPDX-License-Identifier: MIT */
#include "model/idle.h"

#include "base/duration.h"
#include "model/loop.h"

#include <string.h>

#define LEAST_NS DURATION_SECOND

void model_idle_offer(struct model_loop *loop, void *who)
{
    struct model_idle *idle = &loop->idle;
    uint64_t since_ns = idle->kind->since_ns(loop, who);
    bool full = idle->count == MODEL_IDLE_KEPT;
    if (since_ns == MODEL_IDLE_NEVER || (full && since_ns >= idle->kept[0].since_ns))
        return;
    unsigned at = 0; /* the first place behind all that have been idle for less time */
    while (at < idle->count && idle->kept[at].since_ns > since_ns)
        at++;
    if (full) {
        at--;
        memmove(idle->kept, idle->kept + 1, at * sizeof(idle->kept[0]));
    } else {
        memmove(idle->kept + at + 1, idle->kept + at, (idle->count - at) * sizeof(idle->kept[0]));
        idle->count++;
    }
    idle->kept[at] = (struct model_idle_one){ who, since_ns };
}

/* Drops from the end what is no longer idle, or has been idle only since a later time. */
static bool has_candidate(struct model_loop *loop)
{
    struct model_idle *idle = &loop->idle;
    while (idle->count > 0) {
        const struct model_idle_one *last = &idle->kept[idle->count - 1];
        if (idle->kind->since_ns(loop, last->who) == last->since_ns)
            return true;
        idle->count--;
    }
    return false;
}

bool model_idle_close_longest(struct model_loop *loop, uint64_t *ret_again_ns)
{
    struct model_idle *idle = &loop->idle;
    *ret_again_ns = loop->now_ns + LEAST_NS;
    if (!has_candidate(loop))
        idle->kind->search(loop);
    if (idle->count == 0)
        return false;
    struct model_idle_one longest = idle->kept[idle->count - 1];
    if (longest.since_ns + LEAST_NS > loop->now_ns) {
        *ret_again_ns = longest.since_ns + LEAST_NS;
        idle->count = 0; /* a thread may still hold a connection that it answered before */
        return false;
    }
    idle->count--;
    idle->kind->close(loop, longest.who);
    return true;
}
