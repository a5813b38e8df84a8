/* SPDX-License-Identifier: MIT
 *
 * Model `prefork`: the master accepts, and passes each connection to the worker process that has
 * the fewest (server/dispatch.h, ipc/fdpass.h); in a worker a loop takes them in and watches them,
 * and a fixed number of threads serve (model/threadpool.h).
 *
 * Cost: over `pool`, for each connection a message, a wake-up of another process, and one process
 * that sees them all; for each worker a cache of its own, so that a file is read, kept and compared
 * with the disk by each of them, and one notices its change sooner than another.
 * Failure: a crash loses the connections of one worker; those on their way to it are served by its
 * successor. When all have as many as they can, clients wait in the listeners.
 */
#include "model/model.h"
#include "model/threadpool.h"

int model_prefork_serve(struct server *server);

int model_prefork_serve(struct server *server)
{
    return model_threadpool_serve(server);
}
