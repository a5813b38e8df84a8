/* SPDX-License-Identifier: MIT
 *
 * Model `pool`: one thread accepts and watches connections, a fixed number of threads serve them,
 * and a bounded queue is between the two (model/threadpool.h).
 *
 * Cost: compared with an event loop, one epoll_ctl for each request, a share of a wake-up and of a
 * lock, and a stack for each thread.
 * Failure: a crash loses every connection. A lookup that waits for the disk stops only the requests
 * that need it (decision 046). When the queue is full, further clients get 503. With --pool-policy
 * sticky, a thread waits for the disk, and as many idle clients as there are threads stop every
 * other client.
 */
#include "model/model.h"
#include "model/threadpool.h"

int model_pool_serve(struct server *server);

int model_pool_serve(struct server *server)
{
    return model_threadpool_serve(server);
}
