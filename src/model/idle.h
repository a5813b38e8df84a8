/* SPDX-License-Identifier: MIT
 *
 * Makes space for a new connection in a full loop: closes the connection that has been idle
 * longest. Otherwise clients that request nothing could lock every other client out.
 *
 * Requests pay nothing, because connections are kept in no order. A search looks at all of them
 * once, and keeps those that have been idle longest. The next times use these, as long as they are
 * still idle: a connection that has become idle since the search has been idle for less time.
 *
 * A connection that has a request under way is never closed, nor one that has been idle for less
 * than a second. Otherwise clients that send one request after the other would lose their
 * connections to each other.
 *
 * The loop's thread makes all calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct model_loop;

enum { MODEL_IDLE_KEPT = 64 };
#define MODEL_IDLE_NEVER UINT64_MAX /* in place of a time: not idle */

/* How a loop finds and closes idle connections. `who` is a connection as the model knows it. */
struct model_idle_kind {
    /* Calls model_idle_offer for each connection. */
    void (*search)(struct model_loop *loop);
    /* Since when the connection has been idle. MODEL_IDLE_NEVER: it must not be closed. */
    uint64_t (*since_ns)(struct model_loop *loop, void *who);
    /* Closes the connection, now or soon, and counts it. */
    void (*close)(struct model_loop *loop, void *who);
};

struct model_idle_one {
    void *who;
    uint64_t since_ns;
};

/* Part of a loop; zeroed: nothing has been searched. */
struct model_idle {
    const struct model_idle_kind *kind;
    unsigned count;
    struct model_idle_one kept[MODEL_IDLE_KEPT]; /* the longest idle last */
};

/* Reports a connection during a search. */
void model_idle_offer(struct model_loop *loop, void *who);

/* Closes the connection that has been idle longest. False: none may be closed before
 * *ret_again_ns. */
bool model_idle_close_longest(struct model_loop *loop, uint64_t *ret_again_ns);
