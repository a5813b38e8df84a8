/* SPDX-License-Identifier: MIT
 *
 * Model `pool`: one thread accepts and watches, a fixed number of threads serve,
 * with a bounded queue between them (model/crew.h).
 *
 * Cost: over an event loop, an epoll_ctl for each request, a share of a wake-up
 * and of a lock; a stack for each thread.
 * Failure: a slow disk stops one thread of ten, not everybody; when all of them
 * wait for it, the queue fills, and then clients hear 503. With --pool-policy
 * sticky, as many idle clients as there are threads stop everybody else.
 */
#include "model/crew.h"
#include "model/model.h"
#include "model/reactor.h"

int model_pool_run(struct server *server);

int model_pool_run(struct server *server)
{
    struct model_crew *crew = NULL;
    struct model_reactor *loop = NULL;
    int rc = model_crew_new(server, &crew);
    if (rc == 0)
        rc = model_reactors_new(server, 1, &model_crew_placement, crew, &loop);
    if (rc == 0)
        rc = model_crew_start(crew, loop);
    if (rc == 0) {
        model_reactor_run(loop);
        rc = loop->status;
    }
    model_crew_free(crew);
    model_reactors_free(loop);
    return rc;
}
