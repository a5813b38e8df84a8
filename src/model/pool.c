/* SPDX-License-Identifier: MIT
 *
 * Model `pool`: one thread accepts and watches, a fixed number of threads serve,
 * with a bounded queue between them (model/threadpool.h).
 *
 * Cost: over an event loop, an epoll_ctl for each request, a share of a wake-up
 * and of a lock; a stack for each thread.
 * Failure: a slow disk stops one thread of ten, not everybody; when all of them
 * wait for it, the queue fills, and then clients hear 503. With --pool-policy
 * sticky, as many idle clients as there are threads stop everybody else.
 */
#include "model/model.h"
#include "model/threadpool.h"

int model_pool_serve(struct server *server);

int model_pool_serve(struct server *server)
{
    return model_threadpool_serve(server);
}
