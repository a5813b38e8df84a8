/* SPDX-License-Identifier: MIT
 *
 * Model `percore`: one event loop for each core. Each loop is a thread with listeners of its own
 * (SO_REUSEPORT), and all share one cache.
 *
 * The kernel spreads new connections by hash, which is uneven when they are few. So a loop that has
 * more connections than the emptiest loop hands over what it accepts. Later, when connections have
 * aged, a loop hands over open connections if it is clearly busier than the idlest loop, or has
 * clearly more connections than the emptiest (model/balance.h).
 *
 * Cost: the kernel looks up a descriptor more slowly in a table that threads share, for each
 * request. A handover costs a lock and a wake-up, for each connection.
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
