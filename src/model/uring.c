/* SPDX-License-Identifier: MIT
 *
 * Model `uring`: one io_uring for each core, each a thread with listeners of its own.
 */
#include "log/error.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "model/ringloop.h"
#include "model/threads.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

int model_uring_run(struct server *server);

enum { SPARE = 4096 }; /* connections that are let in beyond the limit, in the time to say stop */

static int open_loop(struct model_ringloop *loop, const char **ret_call)
{
    *ret_call = "eventfd";
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return -errno;
    *ret_call = "memory";
    void *table = mmap(NULL, loop->table_size * sizeof(*loop->table), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return -errno;
    loop->table = table;
    loop->doors = calloc(loop->server->listener_count, sizeof(*loop->doors));
    if (!loop->doors)
        return -ENOMEM;
    int rc = session_worker_start(&loop->worker, loop->server->shared, loop->index);
    return rc == 0 ? model_ring_open(&loop->ring, ret_call) : rc;
}

int model_ringloops_new(struct server *server, unsigned count, struct model_ringloop **ret_loops,
                        const char **ret_call)
{
    CHECK(count <= server->listener_sets);
    *ret_call = "memory";
    struct model_ringloop *all = aligned_alloc(CACHE_LINE, count * sizeof(*all));
    if (!all)
        return -ENOMEM;
    memset(all, 0, count * sizeof(*all));
    *ret_loops = all;
    unsigned share = (server->connections_max + count - 1) / count;
    for (unsigned i = 0; i < count; i++) {
        all[i] = (struct model_ringloop){
            .server = server,
            .all = all,
            .count = count,
            .index = i,
            .connections_max = share,
            .table_size = share + SPARE,
            .free = share + SPARE,
            .wake_fd = -1,
        };
        pthread_mutex_init(&all[i].handed_lock, NULL);
        model_wheel_init(&all[i].wheel, os_clock_now_ns());
    }
    int rc = 0;
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = open_loop(&all[i], ret_call);
    return rc;
}

void model_ringloops_free(struct model_ringloop *loops)
{
    if (!loops)
        return;
    unsigned count = loops->count;
    for (unsigned i = 0; i < count; i++) {
        struct model_ringloop *loop = &loops[i];
        model_ring_close(&loop->ring);
        if (loop->worker.reader)
            session_worker_stop(&loop->worker);
        if (loop->table)
            munmap(loop->table, loop->table_size * sizeof(*loop->table));
        os_file_close(loop->wake_fd);
        free(loop->doors);
        pthread_mutex_destroy(&loop->handed_lock);
    }
    free(loops);
}

static int run_loop(void *loops, unsigned index)
{
    return model_ringloop_run((struct model_ringloop *)loops + index);
}

static void stop(void *loops)
{
    struct model_ringloop *first = loops;
    atomic_store(&first->server->phase, SERVER_STOPPING);
    model_ringloops_wake(first);
}

int model_uring_run(struct server *server)
{
    struct model_ringloop *loops = NULL;
    const char *call = "";
    int rc = model_ringloops_new(server, server->threads, &loops, &call);
    struct model_threads threads = {
        .count = server->threads,
        .run = run_loop,
        .stop = stop,
        .context = loops,
    };
    if (rc == 0)
        rc = model_threads_run(&threads);
    model_ringloops_free(loops);
    return rc;
}
