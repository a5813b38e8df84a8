/* SPDX-License-Identifier: MIT
 *
 * Model `uring`: one io_uring for each core, each driven by a thread that waits for completions,
 * with listeners of its own (SO_REUSEPORT) and one cache for all.
 *
 * The kernel accepts, receives and sends. A turn of the loop submits its operations together with
 * the wait for the next completion. So on a busy server a request costs a small part of one system
 * call. New connections are balanced between loops as in `percore`. Files are the exception: the
 * loop calls sendfile, which a ring does not have, when the socket is writable.
 *
 * Cost: the bytes of an answer stay in place until the kernel has sent them. So a turn uses one
 * output buffer for each answer, where `percore` uses one for all. Each idle connection keeps an
 * operation in the kernel, and no buffer.
 * Failure: where the kernel is older than Linux 6.1, or an administrator forbids io_uring,
 * `percore` serves instead. A crash loses every connection of the process. If a disk that hangs
 * keeps the process from ending, its ring still waits for connections, and the kernel wakes that
 * ring and not the one of the successor.
 */
#include "model/uring.h"

#include "log/error.h"
#include "model/model.h"
#include "model/ringloop.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int model_uring_serve(struct server *server);
int model_percore_serve(struct server *server);

/* ---- whether it can be ---- */

/* kernel.io_uring_disabled; 0 where the kernel has no such setting. */
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

static void explain_failure(const char *call, int error, char *why, size_t size)
{
    unsigned disabled = error == EPERM ? disabled_by_administrator() : 0;
    char cause[64] = "";
    if (disabled > 0)
        snprintf(cause, sizeof(cause), " (kernel.io_uring_disabled is %u)", disabled);
    else if (error == EPERM)
        snprintf(cause, sizeof(cause), " (a filter of system calls forbids it)");
    else if (error == ENOSYS)
        snprintf(cause, sizeof(cause), " (this kernel does not have it, or a filter hides it)");
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
        explain_failure(call, -rc, why, size);
    model_ring_close(&ring);
    return rc == 0;
}

/* ---- serving ---- */

/* False: a worker may have fewer rights than the master that probed, or less memory. */
static bool open_rings(struct model_ringloop *loops)
{
    for (unsigned i = 0; i < loops->loop.count; i++) {
        const char *call;
        int rc = model_ring_open(&model_ringloop_at(loops, i)->ring, &call);
        if (rc < 0) {
            char why[MODEL_WHY_MAX];
            explain_failure(call, -rc, why, sizeof(why));
            log_error(LOG_WARNING, "model uring %s; percore serves instead", why);
            return false;
        }
    }
    return true;
}

struct model_ringloop *model_uring_open(struct server *server)
{
    struct model_ringloop *loops = NULL;
    int rc = model_ringloops_new(server, server->threads, &loops);
    if (rc == 0 && open_rings(loops))
        return loops;
    model_ringloops_free(loops);
    return NULL;
}

void model_uring_discard(struct model_ringloop *loops)
{
    model_ringloops_free(loops);
}

int model_uring_serve(struct server *server)
{
    struct model_ringloop *loops = server->rings;
    server->rings = NULL;
    if (!loops)
        return model_percore_serve(server);
    int rc = model_loops_serve(&loops->loop, model_ringloop_serve);
    model_ringloops_free(loops);
    return rc;
}
