/* SPDX-License-Identifier: MIT
 *
 * Model `uring`: one io_uring for each core, each driven by a thread that waits
 * for completions, with listeners of its own (SO_REUSEPORT) and one cache for all.
 *
 * The kernel accepts, receives and sends; a turn of the loop submits what it has
 * to ask for together with the wait for what comes next, so that a request on a
 * busy server costs a small part of one system call. Connections are shared out
 * as `percore` does when it accepts. Only files go another way: sendfile, which a
 * ring does not have, called when the socket has room.
 *
 * Cost: what is sent stays where it is until the kernel has taken it, so there are
 * as many warm output buffers as answers in a turn, where `percore` has one; each
 * idle connection keeps an operation in the kernel, and no buffer.
 * Failure: a kernel before 6.1, or an administrator who forbids io_uring, leaves
 * `percore` to serve; a crash loses every connection of the process.
 */
#include "model/uring.h"

#include "log/error.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "model/ringloop.h"
#include "model/threads.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

int model_uring_serve(struct server *server);
int model_percore_serve(struct server *server);

enum {
    SPARE = 4096, /* connections let in beyond the limit, before the kernel has heard of it */
    WHY_MAX = 160
};

/* ---- whether it can be ---- */

/* kernel.io_uring_disabled; 0 where there is no such setting. */
static unsigned disabled_by_administrator(void)
{
    char digit = '0';
    int fd = open("/proc/sys/kernel/io_uring_disabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    bool known = read(fd, &digit, 1) == 1;
    os_file_close(fd);
    return known ? (unsigned)(digit - '0') : 0;
}

static void explain(const char *call, int error, char *why, size_t size)
{
    unsigned disabled = error == EPERM ? disabled_by_administrator() : 0;
    char cause[64] = "";
    if (disabled > 0)
        snprintf(cause, sizeof(cause), " (kernel.io_uring_disabled is %u)", disabled);
    else if (error == EPERM)
        snprintf(cause, sizeof(cause), " (a filter of system calls forbids it)");
    else if (error == ENOSYS)
        snprintf(cause, sizeof(cause), " (this kernel has it not, or a filter hides it)");
    else if (error == EINVAL || error == EOPNOTSUPP)
        snprintf(cause, sizeof(cause), " (it needs Linux 6.1)");
    snprintf(why, size, "cannot run here: %s: %s%s", call, strerror(error), cause);
}

bool model_uring_possible(char *why, size_t size)
{
    struct model_ring ring;
    const char *call;
    int rc = model_ring_open(&ring, &call);
    if (rc < 0)
        explain(call, -rc, why, size);
    model_ring_close(&ring);
    return rc == 0;
}

/* ---- making and ending ---- */

static int open_loop(struct model_ringloop *loop)
{
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return -errno;
    void *table = mmap(NULL, loop->table_size * sizeof(*loop->table), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return -errno;
    loop->table = table;
    loop->doors = calloc(loop->server->listener_count, sizeof(*loop->doors));
    if (!loop->doors)
        return -ENOMEM;
    return session_thread_start(&loop->worker, loop->server->shared, loop->index);
}

static int make_loops(struct server *server, unsigned count, struct model_ringloop **ret_loops)
{
    CHECK(count <= server->listener_sets);
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
        rc = open_loop(&all[i]);
    return rc;
}

static void free_loops(struct model_ringloop *loops)
{
    for (unsigned i = 0; loops && i < loops->count; i++) {
        struct model_ringloop *loop = &loops[i];
        model_ring_close(&loop->ring);
        if (loop->worker.reader)
            session_thread_stop(&loop->worker);
        if (loop->table)
            munmap(loop->table, loop->table_size * sizeof(*loop->table));
        os_file_close(loop->wake_fd);
        free(loop->doors);
        pthread_mutex_destroy(&loop->handed_lock);
    }
    free(loops);
}

/* Whether there is a ring for every loop: what the master could make, a worker with fewer rights
 * may not, or there is no memory for so many. */
static bool open_rings(struct model_ringloop *loops)
{
    for (unsigned i = 0; i < loops->count; i++) {
        const char *call;
        int rc = model_ring_open(&loops[i].ring, &call);
        if (rc < 0) {
            char why[WHY_MAX];
            explain(call, -rc, why, sizeof(why));
            log_error(LOG_WARNING, "model uring %s; percore serves in its place", why);
            return false;
        }
    }
    return true;
}

/* ---- running ---- */

static int run_loop(void *loops, unsigned index)
{
    return model_ringloop_run((struct model_ringloop *)loops + index);
}

static void stop(void *loops)
{
    struct model_ringloop *first = loops;
    atomic_store(&first->server->phase, SERVER_STOPPING);
    model_ringloop_wake_all(first);
}

int model_uring_serve(struct server *server)
{
    struct model_ringloop *loops = NULL;
    int rc = make_loops(server, server->threads, &loops);
    bool possible = rc == 0 && open_rings(loops);
    struct model_threads threads = {
        .count = server->threads,
        .run = run_loop,
        .stop = stop,
        .context = loops,
    };
    if (possible)
        rc = model_threads_run(&threads);
    free_loops(loops);
    return rc == 0 && !possible ? model_percore_serve(server) : rc;
}
