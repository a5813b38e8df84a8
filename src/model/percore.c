/* SPDX-License-Identifier: MIT
 *
 * Model `percore`: one event loop for each core, each a thread with listeners of
 * its own (SO_REUSEPORT), all of them sharing one cache.
 *
 * The kernel spreads connections by hash, which is uneven when they are few; a
 * loop that has more than the emptiest one hands what it accepts to that one. Later,
 * when connections have aged, a loop that works clearly more than the idlest, or has
 * clearly more of them than the emptiest, hands some over (model/balance.h).
 *
 * Cost: a descriptor table that threads share is slower to look up, for each
 * request; a hand-over is a lock and a wake-up, for each connection.
 * Failure: a crash loses every connection of the process.
 */
#include "model/model.h"
#include "model/reactor.h"
#include "model/threads.h"

int model_percore_serve(struct server *server);

static int run_reactor(void *reactors, unsigned index)
{
    struct model_reactor *r = (struct model_reactor *)reactors + index;
    model_reactor_run(r);
    return r->status;
}

static void stop(void *reactors)
{
    struct model_reactor *first = reactors;
    atomic_store(&first->server->phase, SERVER_STOPPING);
    model_reactors_wake(first);
}

int model_percore_serve(struct server *server)
{
    struct model_reactor *reactors = NULL;
    int rc = model_reactors_new(server, server->threads, NULL, NULL, &reactors);
    struct model_threads threads = {
        .count = server->threads,
        .run = run_reactor,
        .stop = stop,
        .context = reactors,
    };
    if (rc == 0)
        rc = model_threads_run(&threads);
    model_reactors_free(reactors);
    return rc;
}
