/* SPDX-License-Identifier: MIT */
#include "model/threads.h"

#include "log/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct thread {
    pthread_t id;
    const struct model_threads *threads;
    unsigned index;
    int status; /* read after the join */
};

static void *serve_numbered(void *argument)
{
    struct thread *thread = argument;
    const struct model_threads *threads = thread->threads;
    thread->status = threads->serve(threads->context, thread->index);
    if (thread->status < 0)
        threads->stop(threads->context);
    return NULL;
}

int model_threads_serve(const struct model_threads *threads)
{
    struct thread *all = calloc(threads->count, sizeof(*all));
    if (!all)
        return -ENOMEM;
    for (unsigned i = 0; i < threads->count; i++)
        all[i] = (struct thread){ .threads = threads, .index = i };
    unsigned started = 1;
    int rc = 0;
    while (started < threads->count && rc == 0) {
        rc = -pthread_create(&all[started].id, NULL, serve_numbered, &all[started]);
        started += rc == 0;
    }
    if (rc == 0) {
        serve_numbered(&all[0]);
    } else {
        log_error(LOG_ERROR, "cannot start thread %u of %u: %s", started + 1, threads->count,
                  strerror(-rc));
        threads->stop(threads->context);
    }
    for (unsigned i = 1; i < started; i++)
        pthread_join(all[i].id, NULL);
    for (unsigned i = 0; i < threads->count && rc == 0; i++)
        rc = all[i].status;
    free(all);
    return rc;
}
