/* SPDX-License-Identifier: MIT */
#include "server/errand.h"

#include "log/error.h"
#include "os/file.h"
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void drop_line(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* A listener that stayed open here would take connections, and this process accepts none. */
static int keep_only(int fd)
{
    enum { KEPT = STDERR_FILENO + 1 };
    if (fd != KEPT && dup3(fd, KEPT, O_CLOEXEC) < 0)
        return -errno;
    closefrom(KEPT + 1);
    return KEPT;
}

static _Noreturn void run_errand(int fd, pid_t master, void (*run)(void *context, int fd),
                                 void *context)
{
    os_process_name(SERVER_ERRAND_NAME);
    fd = keep_only(fd);
    log_error_divert(drop_line, NULL);
    if (fd >= 0 && os_process_end_with_parent(SIGKILL, master) == 0)
        run(context, fd);
    _exit(0);
}

int server_errand_begin(struct server_errand *errand, void (*run)(void *context, int fd),
                        void *context)
{
    CHECK(errand->fd < 0 && errand->pid == 0);
    const pid_t master = getpid();
    int ends[2];
    errand->signal = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    const int flags = fcntl(ends[0], F_GETFL);
    int rc = flags < 0 || fcntl(ends[0], F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
    fflush(NULL);
    const pid_t pid = rc < 0 ? -1 : fork();
    if (pid == 0)
        run_errand(ends[1], master, run, context);
    rc = pid < 0 && rc == 0 ? -errno : rc;
    os_file_close(ends[1]);
    errand->fd = ends[0];
    errand->pid = pid > 0 ? pid : 0;
    if (rc < 0)
        server_errand_close(errand);
    return rc;
}

int server_errand_read(struct server_errand *errand, void *record, size_t size)
{
    const ssize_t len = read(errand->fd, record, size);
    if (len == (ssize_t)size)
        return 1;
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    server_errand_close(errand);
    return -1;
}

void server_errand_close(struct server_errand *errand)
{
    os_file_close(errand->fd);
    errand->fd = -1;
}

/* Where the process `pid` that was given up is noted; 0: a free place. NULL: nowhere. */
static pid_t *place_of(struct server_errand *errand, pid_t pid)
{
    for (unsigned i = 0; i < SERVER_ERRANDS_LEFT; i++)
        if (errand->left[i] == pid)
            return &errand->left[i];
    return NULL;
}

void server_errand_give_up(struct server_errand *errand)
{
    pid_t *place = place_of(errand, 0);
    server_errand_close(errand);
    if (errand->pid == 0)
        return;
    (void)kill(errand->pid, SIGKILL);
    if (!place)
        return;
    *place = errand->pid;
    errand->pid = 0;
}

bool server_errand_has_process(const struct server_errand *errand)
{
    bool has = errand->pid > 0;
    for (unsigned i = 0; i < SERVER_ERRANDS_LEFT; i++)
        has = has || errand->left[i] > 0;
    return has;
}

bool server_errand_reap(struct server_errand *errand, pid_t pid, int status)
{
    if (errand->pid == pid && WIFSIGNALED(status))
        errand->signal = WTERMSIG(status);
    pid_t *place = errand->pid == pid ? &errand->pid : place_of(errand, pid);
    if (place)
        *place = 0;
    return place != NULL;
}
