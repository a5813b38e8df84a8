/* SPDX-License-Identifier: MIT
 *
 * Model `pool`: one thread accepts and watches connections, a fixed number of threads serve them,
 * and a bounded queue is between the two (model/threadpool.h).
 *
 * Cost: compared with an event loop, one epoll_ctl for each request, a share of a wake-up and of a
 * lock, and a stack for each thread.
 * Failure: a slow disk stops one thread of ten. When all of them wait for it, the queue fills, and
 * further clients get 503. With --pool-policy sticky, as many idle clients as there are threads
 * stop every other client.
 */
#include "model/model.h"
#include "model/threadpool.h"

int model_pool_serve(struct server *server);

int model_pool_serve(struct server *server)
{
    return model_threadpool_serve(server);
}
