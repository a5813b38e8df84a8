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

int model_percore_serve(struct server *server);

int model_percore_serve(struct server *server)
{
    struct model_reactor *reactors = NULL;
    int rc = model_reactors_new(server, server->threads, NULL, NULL, &reactors);
    if (rc == 0)
        rc = model_loops_serve(&reactors->loop, model_reactor_serve);
    model_reactors_free(reactors);
    return rc;
}
