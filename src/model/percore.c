/* SPDX-License-Identifier: MIT
 *
 * Model `percore`: one event loop for each core, each a thread with listeners of
 * its own (SO_REUSEPORT), all of them sharing one cache.
 *
 * The kernel spreads connections by hash, which is uneven when they are few; a
 * loop that has more than the emptiest one hands what it accepts to that one.
 *
 * Cost: a descriptor table that threads share is slower to look up, for each
 * request; a hand-over is a lock and a wake-up, for each connection.
 * Failure: a crash loses every connection of the process.
 */
#include "model/model.h"
#include "model/reactor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int model_percore_run(struct server *server);

static void *run_reactor(void *reactor)
{
    model_reactor_run(reactor);
    return NULL;
}

static int run_threads(struct model_reactor *reactors, unsigned count)
{
    pthread_t *threads = calloc(count, sizeof(*threads));
    if (!threads)
        return -ENOMEM;
    unsigned started = 1; /* the first reactor runs in this thread */
    int rc = 0;
    while (started < count && rc == 0) {
        rc = -pthread_create(&threads[started], NULL, run_reactor, &reactors[started]);
        started += rc == 0;
    }
    if (rc == 0) {
        model_reactor_run(&reactors[0]);
    } else {
        atomic_store(&reactors->server->phase, SERVER_STOPPING);
        model_reactors_wake(reactors);
    }
    for (unsigned i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = reactors[i].status;
    free(threads);
    return rc;
}

int model_percore_run(struct server *server)
{
    struct model_reactor *reactors = NULL;
    int rc = model_reactors_new(server, server->threads, NULL, NULL, &reactors);
    if (rc == 0)
        rc = run_threads(reactors, server->threads);
    model_reactors_free(reactors);
    return rc;
}
