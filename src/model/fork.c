/* SPDX-License-Identifier: MIT
 *
 * Model `fork`: one process for each connection, with blocking calls. A loop
 * accepts, forks, and reaps on SIGCHLD.
 *
 * Cost: a fork, an exit and the faults of a copied address space for each
 * connection; a switch of processes for each request. The cache is the child's
 * own and begins empty, so each connection opens and reads its files anew, and
 * keeps in memory what it has read; its log lines go out in a write of its own.
 * Failure: a crash costs one connection. No more processes to be had is 503 for
 * new connections. Should the parent die, its children drain and end by
 * themselves.
 *
 * The handlers below are installed in the parent, which blocks the signals and
 * so never runs them: a child is spared the calls. What they do is safe at any
 * moment: shutdown(2) and setitimer(2), and for the log open(2) and dup3(2).
 */
#include "log/error.h"
#include "model/connection.h"
#include "model/model.h"
#include "model/pump.h"
#include "model/reactor.h"
#include "os/file.h"
#include "os/process.h"
#include "stats/blocks.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int model_fork_serve(struct server *server);

enum {
    BUCKETS = 8192, /* of their table; a power of two */
    KILL_AFTER = 10 /* calls to end, by which a child has ended or is killed */
};

struct child {
    struct child *next; /* in the bucket, or among the free ones */
    pid_t pid;
};

/* No child has this: it is neither copied for them nor, by their coming, to be
 * copied on each write. */
struct children {
    struct server *server;
    struct child *free;
    struct child *bucket[BUCKETS];
    unsigned alive;
    unsigned ends; /* how often they were told to end */
    unsigned made; /* elements of `all` that were ever used */
    struct child all[MODEL_PER_CONNECTION_MAX];
};

/* ---- in the child ---- */

/* What its signal handlers know. */
static struct {
    struct server *server;
    struct model_pump pump;
    bool had_idle_alarm;
} child;

static void set_alarm(uint64_t wait_ns)
{
    uint64_t us = wait_ns / 1000 + 1;
    struct itimerval time = { .it_value = { .tv_sec = (time_t)(us / 1000000),
                                            .tv_usec = (suseconds_t)(us % 1000000) } };
    (void)setitimer(ITIMER_REAL, &time, NULL); /* fails for bad arguments only */
}

static void begin_drain(void)
{
    if (!atomic_exchange(&child.server->shared->draining, true))
        set_alarm(child.server->drain_idle_ns);
}

static void go_on_draining(void)
{
    if (child.had_idle_alarm) {
        model_pump_end(&child.pump);
        return;
    }
    child.had_idle_alarm = true;
    model_pump_end_idle(&child.pump);
    set_alarm(child.server->drain_timeout_ns);
}

static void handle(int signal)
{
    int saved_errno = errno;
    if (signal == SIGTERM)
        begin_drain();
    else if (signal == SIGALRM)
        go_on_draining();
    else if (signal == SIGQUIT)
        model_pump_end(&child.pump);
    else if (log_access_reopen(child.server->shared->log) < 0 || log_error_reopen() < 0)
        (void)0; /* the parent tells */
    errno = saved_errno;
}

static const int handled[] = { SIGTERM, SIGALRM, SIGQUIT, SIGUSR1 };

static void handled_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
        sigaddset(set, handled[i]);
}

static int install_handlers(void)
{
    sigset_t set;
    handled_set(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    struct sigaction action = { .sa_handler = handle, .sa_mask = set };
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
        if (sigaction(handled[i], &action, NULL) < 0)
            return -errno;
    return 0;
}

/* A stopped server's port is free although children still serve, and whom the
 * loop answers 503 is gone when the loop says so. */
static void close_inherited(const struct model_reactor *r, bool loop_has_some)
{
    const struct server *server = r->loop.server;
    for (unsigned i = 0; i < server->listener_count * server->listener_sets; i++)
        os_file_close(server->listeners[i]);
    os_file_close(r->epoll_fd);
    os_file_close(r->loop.wake_fd);
    os_file_close(server->signal_fd);
    for (size_t fd = 0; fd < r->loop.files_max && loop_has_some; fd++)
        if (r->table[fd].owner == r)
            os_file_close((int)fd);
}

static _Noreturn void serve(struct model_reactor *r, int fd, struct session_peer peer, pid_t parent,
                            bool loop_has_some)
{
    child.server = r->loop.server;
    model_pump_init(&child.pump, fd, r->loop.server->drain_idle_ns);
    close_inherited(r, loop_has_some);
    session_thread_inherit(&r->loop.thread);
    sigset_t set;
    handled_set(&set);
    if (os_process_end_with_parent(SIGTERM, parent) == 0 &&
        sigprocmask(SIG_UNBLOCK, &set, NULL) == 0)
        model_pump_serve(&child.pump, &r->loop.thread, peer, r->input);
    os_file_close(fd); /* first: the client waits for it */
    session_thread_stop(&r->loop.thread);
    _exit(0);
}

/* ---- the table of children ---- */

static struct child **bucket_of(struct children *c, pid_t pid)
{
    return &c->bucket[(unsigned)pid % BUCKETS];
}

static void remember(struct children *c, pid_t pid)
{
    struct child *each = c->free;
    if (each)
        c->free = each->next;
    else
        each = &c->all[c->made++]; /* no more than connections_max are alive */
    *each = (struct child){ .next = *bucket_of(c, pid), .pid = pid };
    *bucket_of(c, pid) = each;
    c->alive++;
}

/* Whether it was a child of ours. */
static bool forget(struct children *c, pid_t pid)
{
    struct child **link = bucket_of(c, pid);
    while (*link && (*link)->pid != pid)
        link = &(*link)->next;
    struct child *each = *link;
    if (!each)
        return false;
    *link = each->next;
    each->next = c->free;
    c->free = each;
    c->alive--;
    return true;
}

static void tell(struct children *c, int signal)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct child *each = c->bucket[i]; each; each = each->next)
            (void)kill(each->pid, signal); /* until it is reaped the id is nobody else's */
}

/* ---- what the loop asks for ---- */

static bool place(struct model_reactor *r, int fd, struct session_peer peer)
{
    static struct log_error_limit limit;
    struct children *c = r->place;
    pid_t parent = getpid();
    bool loop_has_some = atomic_load(&r->loop.live) > c->alive + 1; /* this one */
    session_thread_divide(&r->loop.thread);
    pid_t pid = fork();
    if (pid == 0)
        serve(r, fd, peer, parent, loop_has_some);
    if (pid < 0) {
        log_error_limited(&limit, 10, LOG_ERROR, "cannot start a process: %s; answering 503",
                          strerror(errno));
        return false;
    }
    remember(c, pid);
    os_file_close(fd);
    return true;
}

static void reap(struct model_reactor *r)
{
    static struct log_error_limit limit;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (!forget(r->place, pid))
            continue;
        stats_add(&r->loop.thread.stats, STATS_connections_closed, 1);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            (void)stats_blocks_settle(r->loop.server->shared->stats, pid);
            stats_add(&r->loop.thread.stats, STATS_connections_lost, 1);
        }
        if (WIFSIGNALED(status))
            log_error_limited(&limit, 10, LOG_ERROR,
                              "process %d, with one connection, was killed by signal %d", (int)pid,
                              WTERMSIG(status));
        model_loop_ended(&r->loop);
    }
}

static void follow_signal(struct model_reactor *r, int signal)
{
    if (signal == SIGCHLD)
        reap(r); /* several deaths may be one signal */
    else if (signal == SIGUSR1)
        tell(r->place, SIGUSR1);
}

static void drain(struct model_reactor *r)
{
    tell(r->place, SIGTERM);
}

static void close_all(struct model_reactor *r)
{
    struct children *c = r->place;
    tell(c, c->ends++ < KILL_AFTER ? SIGQUIT : SIGKILL);
}

static const struct model_placement placement = {
    .forks = true,
    .place = place,
    .drain = drain,
    .close_all = close_all,
    .signal = follow_signal,
};

int model_fork_serve(struct server *server)
{
    if (server->connections_max > MODEL_PER_CONNECTION_MAX)
        server->connections_max = MODEL_PER_CONNECTION_MAX;
    struct children *c =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return -errno;
    c->server = server;
    struct model_reactor *reactor = NULL;
    int rc = madvise(c, sizeof(*c), MADV_DONTFORK) < 0 ? -errno : install_handlers();
    if (rc == 0)
        rc = model_reactors_new(server, 1, &placement, c, &reactor);
    if (rc == 0) {
        session_thread_prepare(&reactor->loop.thread);
        rc = model_reactor_serve(&reactor->loop);
    }
    model_reactors_free(reactor);
    munmap(c, sizeof(*c));
    return rc;
}
