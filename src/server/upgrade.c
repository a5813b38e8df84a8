/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. The successor inherits the write end of a pipe. Bytes and then the end of
 * the pipe mean that it serves. The end without bytes means that it has failed. LISTEN_PID is known
 * only in the child, so the child makes the environment.
 */
#include "server/upgrade.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/clock.h"
#include "server/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 3, NUMBER_MAX = 32 };

/* Variables that the successor gets with new values, or that are this process's alone. */
static const char *const left_out[] = {
    "LISTEN_PID=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "WATCHDOG_PID=", NULL,
};

/* ---- file, arguments, environment ---- */

/* The path by which the program was started may have a link, which leads to another version when
 * SIGUSR2 comes. It may be relative: the master stays in its folder. Where it leads to another
 * file, such as an interpreter, the path of this file is used. */
static int find_file(struct server_upgrade *upgrade)
{
    char path[PATH_MAX], target[PATH_MAX];
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel passes a pointer as a number */
    const char *start = (const char *)getauxval(AT_EXECFN);
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
    if (len < 0)
        return -errno;
    if ((size_t)len == sizeof(path))
        return -ENAMETOOLONG;
    path[len] = '\0';
    bool leads_here = start && realpath(start, target) && strcmp(target, path) == 0;
    upgrade->file = strdup(leads_here ? start : path);
    return upgrade->file ? 0 : -ENOMEM;
}

/* Reads a file of /proc to its end: its size is not known in advance. */
static int read_whole(const char *path, char **ret_bytes, size_t *ret_len)
{
    FILE *in = fopen(path, "re");
    char *bytes = NULL;
    size_t len = 0, size = 0;
    bool good = in != NULL;
    while (good && len == size) {
        size = size ? 2 * size : 4096;
        char *grown = realloc(bytes, size);
        good = grown != NULL;
        bytes = good ? grown : bytes;
        len += good ? fread(bytes + len, 1, size - len, in) : 0;
    }
    good = good && !ferror(in);
    int rc = good ? 0 : -(errno ? errno : EIO);
    if (in)
        fclose(in);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    *ret_bytes = bytes;
    *ret_len = len;
    return 0;
}

/* All arguments are in one block of memory; the first one is its start. */
static int find_arguments(struct server_upgrade *upgrade)
{
    char *bytes;
    size_t len, count = 0;
    int rc = read_whole("/proc/self/cmdline", &bytes, &len);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < len; i++)
        count += bytes[i] == '\0';
    upgrade->arguments = calloc(count + 1, sizeof(*upgrade->arguments));
    if (!upgrade->arguments || count == 0) {
        free(bytes);
        return -ENOMEM;
    }
    char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        upgrade->arguments[i] = at;
        at += strlen(at) + 1;
    }
    return 0;
}

static bool is_left_out(const char *variable)
{
    for (const char *const *name = left_out; *name; name++)
        if (strncmp(variable, *name, strlen(*name)) == 0)
            return true;
    return false;
}

/* The strings stay valid when unsetenv removes a variable. */
static int find_environment(struct server_upgrade *upgrade)
{
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    upgrade->environment = calloc(count + 1, sizeof(*upgrade->environment));
    if (!upgrade->environment)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!is_left_out(environ[i]))
            upgrade->environment[kept++] = environ[i];
    return 0;
}

int server_upgrade_remember(struct server_upgrade *ret_upgrade)
{
    *ret_upgrade = (struct server_upgrade){ .ready_fd = -1 };
    int rc = find_file(ret_upgrade);
    if (rc == 0)
        rc = find_arguments(ret_upgrade);
    if (rc == 0)
        rc = find_environment(ret_upgrade);
    if (rc < 0)
        server_upgrade_done(ret_upgrade);
    return rc;
}

void server_upgrade_done(struct server_upgrade *upgrade)
{
    if (upgrade->ready_fd >= 0)
        close(upgrade->ready_fd);
    if (upgrade->arguments)
        free(upgrade->arguments[0]);
    free(upgrade->arguments);
    free(upgrade->environment);
    free(upgrade->file);
    *upgrade = (struct server_upgrade){ .ready_fd = -1 };
}

/* ---- the child ---- */

/* Moves the descriptors to 3, 4, ... Each first gets a number above all of these, so that none is
 * overwritten. The error log gets one, too: its line would otherwise go to another descriptor, and
 * in the pipe it would mean that the successor serves. */
static bool place_descriptors(const struct server_upgrade_descriptor *descriptors, size_t count)
{
    int past = FIRST + (int)count;
    int *moved = calloc(count, sizeof(*moved));
    bool good = moved != NULL && log_error_move(past) == 0;
    for (size_t i = 0; i < count && good; i++) {
        moved[i] = fcntl(descriptors[i].fd, F_DUPFD_CLOEXEC, past);
        good = moved[i] >= 0;
    }
    for (size_t i = 0; i < count && good; i++)
        good = dup2(moved[i], FIRST + (int)i) >= 0;
    free(moved);
    return good;
}

static char *join_names(const struct server_upgrade_descriptor *descriptors, size_t count)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    fputs("LISTEN_FDNAMES=", out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i > 0 ? ":" : "", descriptors[i].name);
    return fclose(out) == 0 ? text : NULL;
}

/* The stored variables, and those that the protocol adds. */
static char **make_environment(const struct server_upgrade *upgrade, char *names, size_t fds)
{
    static char pid[NUMBER_MAX], number[NUMBER_MAX];
    size_t count = 0;
    while (upgrade->environment[count])
        count++;
    char **all = calloc(count + 4, sizeof(*all));
    if (!all || !names)
        return NULL;
    memcpy(all, upgrade->environment, count * sizeof(*all));
    snprintf(pid, sizeof(pid), "LISTEN_PID=%d", (int)getpid());
    snprintf(number, sizeof(number), "LISTEN_FDS=%zu", fds);
    all[count] = pid;
    all[count + 1] = number;
    all[count + 2] = names;
    return all;
}

static _Noreturn void be_successor(const struct server_upgrade *upgrade,
                                   const struct server_upgrade_descriptor *descriptors,
                                   size_t count)
{
    const struct sigaction as_usual = { .sa_handler = SIG_DFL };
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)sigaction(SIGPIPE, &as_usual, NULL);
    (void)sigaction(SIGXFSZ, &as_usual, NULL);
    char **environment = make_environment(upgrade, join_names(descriptors, count), count);
    if (!environment) {
        log_error(LOG_ERROR, "not enough memory to start %s", upgrade->file);
        _exit(1);
    }
    if (place_descriptors(descriptors, count))
        execve(upgrade->file, upgrade->arguments, environment);
    log_error(LOG_ERROR, "cannot start %s: %s", upgrade->file, strerror(errno));
    _exit(1);
}

/* ---- the parent ---- */

int server_upgrade_begin(struct server_upgrade *upgrade,
                         const struct server_upgrade_descriptor *descriptors, size_t count,
                         bool beside_stuck)
{
    int ends[2];
    if (!upgrade->file)
        return -ENOEXEC;
    if (upgrade->ready_fd >= 0)
        return -EALREADY;
    if (upgrade->late && upgrade->killed > 0)
        return -EBUSY;
    struct server_upgrade_descriptor *all = calloc(count + 1, sizeof(*all));
    if (!all)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        free(all);
        return -errno;
    }
    if (count > 0)
        memcpy(all, descriptors, count * sizeof(*all));
    all[count].fd = ends[1];
    all[count].name = beside_stuck ? SERVER_INHERITED_STUCK : SERVER_INHERITED_READY;
    fflush(NULL);
    pid_t pid = fork();
    int rc = pid < 0 ? -errno : 0;
    if (pid == 0)
        be_successor(upgrade, all, count + 1);
    free(all);
    close(ends[1]);
    if (rc < 0) {
        close(ends[0]);
        return rc;
    }
    upgrade->pid = pid;
    upgrade->ready_fd = ends[0];
    upgrade->has_data = false;
    upgrade->limit_ns = os_clock_now_ns() + SERVER_UPGRADE_LIMIT_MS * DURATION_MS;
    return 0;
}

/* Gives its process id. */
static pid_t leave_successor(struct server_upgrade *upgrade)
{
    const pid_t pid = upgrade->pid;
    close(upgrade->ready_fd);
    upgrade->ready_fd = -1;
    upgrade->pid = 0;
    return pid;
}

/* The master does not wait for the end: the process may wait for a disk, and then no signal ends
 * it. */
static void kill_successor(struct server_upgrade *upgrade)
{
    const pid_t pid = leave_successor(upgrade);
    if (pid == 0)
        return;
    (void)kill(pid, SIGKILL); /* it may be dead already; it is not reaped yet */
    upgrade->killed = pid;
}

/* After the second signal a server waits for no client and no `drain-delay`. Two signals of one
 * kind would count as one. */
void server_upgrade_abandon(struct server_upgrade *upgrade)
{
    const pid_t pid = upgrade->ready_fd >= 0 ? leave_successor(upgrade) : 0;
    if (pid == 0)
        return;
    (void)kill(pid, SIGTERM);
    (void)kill(pid, SIGINT);
    upgrade->ending = pid;
}

void server_upgrade_end(struct server_upgrade *upgrade, unsigned patience_ms)
{
    enum { STEP_MS = 10 };
    for (unsigned waited_ms = 0; upgrade->ending > 0; waited_ms += STEP_MS) {
        if (waitpid(upgrade->ending, NULL, WNOHANG) != 0) {
            upgrade->ending = 0;
        } else if (waited_ms >= patience_ms) {
            (void)kill(upgrade->ending, SIGKILL);
            return;
        } else {
            (void)poll(NULL, 0, STEP_MS);
        }
    }
}

/* Another process may get the id now. */
bool server_upgrade_reaped(struct server_upgrade *upgrade, pid_t pid)
{
    pid_t *left = upgrade->killed == pid ? &upgrade->killed : &upgrade->ending;
    if (*left == pid) {
        *left = 0;
        return true;
    }
    if (upgrade->pid != pid)
        return false;
    upgrade->pid = 0;
    upgrade->limit_ns = 0; /* the next check is due now */
    return true;
}

enum server_upgrade_state server_upgrade_check(struct server_upgrade *upgrade, uint64_t now_ns)
{
    char bytes[1024];
    if (upgrade->ready_fd < 0)
        return SERVER_UPGRADE_NONE;
    ssize_t len = read(upgrade->ready_fd, bytes, sizeof(bytes));
    while (len > 0) {
        upgrade->has_data = true;
        len = read(upgrade->ready_fd, bytes, sizeof(bytes));
    }
    bool ended = upgrade->pid == 0; /* its children may still hold the pipe open */
    bool waits = len < 0 && (errno == EAGAIN || errno == EINTR) && !ended;
    if (waits && now_ns < upgrade->limit_ns)
        return SERVER_UPGRADE_PENDING;
    if (!waits && !ended && upgrade->has_data) {
        close(upgrade->ready_fd);
        upgrade->ready_fd = -1;
        return SERVER_UPGRADE_READY;
    }
    if (waits)
        log_error(LOG_ERROR, "process %d was not ready within %d s and is killed",
                  (int)upgrade->pid, SERVER_UPGRADE_LIMIT_MS / 1000);
    upgrade->late = waits;
    kill_successor(upgrade);
    return SERVER_UPGRADE_FAILED;
}
