/* SPDX-License-Identifier: MIT
 *
 * An event loop over completions: one thread, one ring, the connections that it owns, and the
 * sessions on them. Model `uring` has one for each core.
 *
 * For a request on a warm connection the loop makes no system call of its own. A send is submitted
 * together with the wait that ends the turn, and one submitted receive serves many requests.
 */
#pragma once

#include "base/check.h"
#include "model/loop.h"
#include "model/ring.h"

#include <stdint.h>

struct model_ringconnection;

/* The subject of a completion, beside the number of a connection or of a listener. */
enum model_ringloop_about {
    ABOUT_NOTHING, /* a cancel that came too late */
    ABOUT_WAKE,
    ABOUT_SIGNAL,
    ABOUT_LISTENER, /* a connection waits to be accepted */
    ABOUT_ACCEPT,   /* the kernel has accepted a connection */
    ABOUT_RECEIVE,
    ABOUT_SEND,
    ABOUT_WRITABLE, /* the socket takes more bytes */
};

enum { RINGLOOP_ABOUT_BITS = 8 };

static inline uint64_t model_ringloop_about(enum model_ringloop_about about, size_t number)
{
    return (uint64_t)number << RINGLOOP_ABOUT_BITS | (uint64_t)about;
}

/* What the kernel does with a listener for a loop. */
struct model_ringlistener {
    bool accepting;  /* it accepts every connection, and reports each */
    bool watching;   /* it reports when a connection waits */
    bool cancelling; /* it has been asked to end either */
};

struct model_ringloop {
    struct model_loop loop; /* first: a pointer to it points to the ring's loop */
    struct model_ring ring;
    struct model_ringlistener *listeners; /* server->listener_count of them */
    struct model_ringconnection *table;   /* by number */
    unsigned table_size;
    unsigned table_used; /* elements that have ever been used: 0 .. table_used - 1 */
    unsigned free;       /* the first of the list of used and free elements; table_size: none */
};

/* Makes the `count` loops of a server, without their rings. 0 or -errno, with *ret_loops for
 * model_ringloops_free. */
MUST_USE int model_ringloops_new(struct server *server, unsigned count,
                                 struct model_ringloop **ret_loops);
void model_ringloops_free(struct model_ringloop *loops);

/* The loop with this index in the same process. */
static inline struct model_ringloop *model_ringloop_at(const struct model_ringloop *r,
                                                       unsigned index)
{
    return (struct model_ringloop *)model_loop_at(&r->loop, index);
}

/* Runs the ring's loop that begins with `loop` until the server stops and its connections are
 * gone. 0 or -errno. */
MUST_USE int model_ringloop_serve(struct model_loop *loop);
