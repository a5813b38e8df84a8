/* SPDX-License-Identifier: MIT
 *
 * Model `epoll`: one thread, one event loop, every connection on it.
 *
 * Cost: none for locks, none for threads; a private descriptor table, which the
 * kernel looks up faster than a shared one. One core at most.
 * Failure: a slow disk read stops everybody; a crash loses every connection.
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
