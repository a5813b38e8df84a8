/* SPDX-License-Identifier: MIT
 *
 * Model `epoll`: one thread, one event loop, every connection on it.
 *
 * Cost: no locks and no other threads. The process has one thread, so the kernel looks up a
 * descriptor faster than in a table that threads share. It uses one core at most.
 * Failure: a crash loses every connection. A lookup that waits for the disk stops only the requests
 * that need it (decision 046).
 */
#include "model/model.h"
#include "model/reactor.h"

int model_epoll_serve(struct server *server);

int model_epoll_serve(struct server *server)
{
    struct model_reactor *reactor = NULL;
    int rc = model_reactors_new(server, 1, NULL, NULL, &reactor);
    if (rc == 0) {
        rc = model_reactor_serve(&reactor->loop);
    }
    model_reactors_free(reactor);
    return rc;
}
