/* SPDX-License-Identifier: MIT
 *
 * Model `fork`: one process for each connection, with blocking calls. A reactor accepts, forks, and
 * reaps on SIGCHLD.
 *
 * Cost: for each connection a fork, an exit, and the page faults of a copied address space; for
 * each request a switch of processes. A child's cache is its own and begins empty, so each
 * connection opens and reads its files again, and keeps them in memory. Its log lines need a write
 * of their own.
 * Failure: a crash costs one connection. When the system allows no more processes, new connections
 * get 503. When the parent dies, its children drain and end.
 *
 * The parent installs the signal handlers below and blocks the signals, so it never runs them. This
 * saves each child the calls. The handlers call only functions that are safe at any moment:
 * shutdown(2) and setitimer(2), and for the logs recvmsg(2) and dup3(2).
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
    BUCKETS = 8192, /* of the table of children; a power of two */
    KILL_AFTER = 10 /* SIGQUIT is sent this often before SIGKILL */
};

/* What a child reports to its parent, which reads it while the child lives, or after a crash. */
struct report {
    _Atomic uint64_t idle_since_ns; /* see struct model_pump */
    _Atomic uint32_t counted;       /* see struct session_thread. The parent sets it at first */
};

#define REPORT_BYTES (MODEL_PER_CONNECTION_MAX * sizeof(struct report))

struct child {
    struct child *next; /* in its bucket, or in the list of free elements */
    pid_t pid;
    uint64_t displaced_ns; /* SIGUSR2 was sent when it had been idle since then; 0: never */
};

/* Children do not get this memory (MADV_DONTFORK). So a fork does not copy its page tables, and the
 * parent's writes do not copy its pages. */
struct children {
    struct server *server;
    struct child *free;
    struct child *bucket[BUCKETS];
    unsigned alive;
    unsigned ends;         /* how often the children got SIGQUIT or SIGKILL */
    unsigned made;         /* elements of `all` that have ever been used */
    struct report *report; /* of each element; shared with its child, which writes it */
    struct child all[MODEL_PER_CONNECTION_MAX];
};

/* ---- in the child ---- */

/* What the signal handlers use. */
static struct {
    struct server *server;
    struct model_pump pump;
    bool drains; /* `draining` of the server may have been set before the fork */
    bool had_idle_alarm;
    _Atomic bool displaced; /* its connection ends to make space */
} child;

/* Of model/pump.h. The children have copies of the descriptor. */
static int drain_fd = -1;

static void set_alarm(uint64_t wait_ns)
{
    uint64_t us = wait_ns / 1000 + 1;
    struct itimerval time = { .it_value = { .tv_sec = (time_t)(us / 1000000),
                                            .tv_usec = (suseconds_t)(us % 1000000) } };
    (void)setitimer(ITIMER_REAL, &time, NULL); /* fails for bad arguments only */
}

static void begin_child_drain(void)
{
    atomic_store(&child.server->shared->draining, true);
    if (!child.drains)
        set_alarm(child.server->drain_idle_ns);
    child.drains = true;
}

static void continue_child_drain(void)
{
    if (child.had_idle_alarm) {
        (void)model_pump_end(&child.pump);
        return;
    }
    child.had_idle_alarm = true;
    (void)model_pump_end_idle(&child.pump);
    set_alarm(child.server->drain_timeout_ns);
}

static void displace_self(void)
{
    if (model_pump_end_idle(&child.pump))
        atomic_store(&child.displaced, true);
}

static void handle_in_child(int signal)
{
    int saved_errno = errno;
    if (signal == SIGTERM)
        begin_child_drain();
    else if (signal == SIGALRM)
        continue_child_drain();
    else if (signal == SIGQUIT)
        (void)model_pump_end(&child.pump);
    else if (signal == SIGUSR2)
        displace_self();
    else if (model_take_logs(child.server) < 0)
        (void)0; /* the parent reports it */
    errno = saved_errno;
}

static const int handled[] = { SIGTERM, SIGALRM, SIGQUIT, SIGUSR1, SIGUSR2 };

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
    struct sigaction action = { .sa_handler = handle_in_child, .sa_mask = set };
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
        if (sigaction(handled[i], &action, NULL) < 0)
            return -errno;
    return 0;
}

/* Closes the child's copies of descriptors that it does not use. Otherwise the port of a stopped
 * server, or a connection that the reactor has closed, would stay open as long as the child. */
static void close_inherited(struct model_reactor *r)
{
    const struct server *server = r->loop.server;
    for (unsigned i = 0; i < server->listener_count * server->listener_sets; i++)
        os_file_close(server->listeners[i]);
    os_file_close(r->epoll_fd);
    os_file_close(r->loop.wake_fd);
    os_file_close(server->signal_fd);
    struct model_wheel_node *node = NULL;
    while ((node = model_wheel_next(&r->loop.wheel, node)))
        os_file_close((int)(model_connection_of(node) - r->table));
}

static _Noreturn void serve_in_child(struct model_reactor *r, int fd, struct session_origin origin,
                                     pid_t parent, struct report *report)
{
    child.server = r->loop.server;
    model_pump_init(&child.pump, fd, drain_fd, r->loop.server->drain_idle_ns, r->loop.now_ns);
    child.pump.idle_since_ns = &report->idle_since_ns;
    close_inherited(r);
    session_thread_inherit(&r->loop.thread);
    r->loop.thread.counted = &report->counted;
    sigset_t set;
    handled_set(&set);
    if (os_process_end_with_parent(SIGTERM, parent) == 0 &&
        sigprocmask(SIG_UNBLOCK, &set, NULL) == 0)
        model_pump_serve(&child.pump, &r->loop.thread, origin, r->input);
    stats_writer_add(&r->loop.thread.stats, STATS_connections_displaced,
                     atomic_load(&child.displaced));
    os_file_close(fd); /* first, because the client waits for it */
    session_thread_stop(&r->loop.thread);
    _exit(0);
}

/* ---- the table of children ---- */

static struct child **bucket_of_child(struct children *c, pid_t pid)
{
    return &c->bucket[(unsigned)pid % BUCKETS];
}

static void remember_child(struct children *c, pid_t pid)
{
    struct child *each = c->free;
    if (each)
        c->free = each->next;
    else
        each = &c->all[c->made++]; /* no more than connections_max are alive */
    *each = (struct child){ .next = *bucket_of_child(c, pid), .pid = pid };
    *bucket_of_child(c, pid) = each;
    c->alive++;
}

/* The result is the address that the child has left counted. False: it was not a child that
 * serves. */
static bool forget_child(struct children *c, pid_t pid, struct session_peer *ret_peer)
{
    struct child **link = bucket_of_child(c, pid);
    while (*link && (*link)->pid != pid)
        link = &(*link)->next;
    struct child *each = *link;
    if (!each)
        return false;
    *ret_peer = session_peer_unpack(atomic_load(&c->report[each - c->all].counted));
    *link = each->next;
    *each = (struct child){ .next = c->free };
    c->free = each;
    c->alive--;
    return true;
}

static void signal_children(struct children *c, int signal)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct child *each = c->bucket[i]; each; each = each->next)
            (void)kill(each->pid, signal); /* the id stays the child's until it is reaped */
}

/* ---- the placement ---- */

static bool fork_child(struct model_reactor *r, int fd, struct session_origin origin)
{
    static struct log_error_limit limit;
    struct children *c = r->place;
    pid_t parent = getpid();
    struct child *next = c->free ? c->free : &c->all[c->made]; /* fewer than the most are alive */
    struct report *report = &c->report[next - c->all];
    atomic_store(&report->idle_since_ns, r->loop.now_ns);
    atomic_store(&report->counted, session_peer_pack(&origin.peer));
    session_thread_divide(&r->loop.thread);
    pid_t pid = fork();
    if (pid == 0)
        serve_in_child(r, fd, origin, parent, report);
    if (pid < 0) {
        log_error_limited(&limit, 10, LOG_ERROR, "cannot start a process: %s; answering 503",
                          strerror(errno));
        return false;
    }
    remember_child(c, pid);
    os_file_close(fd);
    return true;
}

static void reap_serving(struct model_reactor *r)
{
    static struct log_error_limit limit;
    int status;
    pid_t pid;
    struct session_peer peer;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (!forget_child(r->place, pid, &peer))
            continue;
        stats_writer_add(&r->loop.thread.stats, STATS_connections_closed, 1);
        model_loop_release_address(&r->loop, &peer);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            (void)stats_blocks_settle(r->loop.server->shared->stats, pid);
            stats_writer_add(&r->loop.thread.stats, STATS_connections_lost, 1);
        }
        if (WIFSIGNALED(status))
            log_error_limited(&limit, 10, LOG_ERROR,
                              "process %d, with one connection, was killed by signal %d", (int)pid,
                              WTERMSIG(status));
        model_loop_ended(&r->loop);
    }
}

static void act_on_signal(struct model_reactor *r, int signal)
{
    if (signal == SIGCHLD)
        reap_serving(r); /* one signal may stand for several deaths */
    else if (signal == SIGUSR1)
        signal_children(r->place, SIGUSR1);
}

/* A child that is about to wait when the signal arrives finds the descriptor readable. */
static void drain_children(struct model_reactor *r)
{
    signal_children(r->place, SIGTERM);
    model_pump_report_drain(drain_fd);
}

static void end_children(struct model_reactor *r)
{
    struct children *c = r->place;
    signal_children(c, c->ends++ < KILL_AFTER ? SIGQUIT : SIGKILL);
}

/* ---- making space ---- */

static void search_idle_children(struct model_loop *loop)
{
    struct children *c = ((struct model_reactor *)loop)->place;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct child *each = c->bucket[i]; each; each = each->next)
            model_idle_offer(loop, each);
}

static uint64_t child_idle_since_ns(struct model_loop *loop, void *who)
{
    const struct children *c = ((struct model_reactor *)loop)->place;
    const struct child *each = who;
    if (each->pid == 0)
        return MODEL_IDLE_NEVER;
    const uint64_t since_ns =
        atomic_load_explicit(&c->report[each - c->all].idle_since_ns, memory_order_relaxed);
    return since_ns == each->displaced_ns ? MODEL_IDLE_NEVER : since_ns;
}

static void displace_child(struct model_loop *loop, void *who)
{
    struct child *each = who;
    each->displaced_ns = child_idle_since_ns(loop, each);
    (void)kill(each->pid, SIGUSR2); /* the child counts it, unless a request has come first */
}

static const struct model_idle_kind fork_idle = {
    .search = search_idle_children,
    .since_ns = child_idle_since_ns,
    .close = displace_child,
};

static const struct model_placement fork_placement = {
    .forks = true,
    .idle = &fork_idle,
    .place = fork_child,
    .drain = drain_children,
    .close_all = end_children,
    .signal = act_on_signal,
};

int model_fork_serve(struct server *server)
{
    if (server->connections_max > MODEL_PER_CONNECTION_MAX)
        server->connections_max = MODEL_PER_CONNECTION_MAX;
    struct children *c =
        mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *shared =
        mmap(NULL, REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED || shared == MAP_FAILED)
        return -errno; /* the process ends */
    c->server = server;
    c->report = shared;
    struct model_reactor *reactor = NULL;
    int rc = madvise(c, sizeof(*c), MADV_DONTFORK) < 0 ? -errno : install_handlers();
    drain_fd = model_pump_open_drain();
    if (rc == 0 && drain_fd < 0)
        rc = drain_fd;
    if (rc == 0)
        rc = model_reactors_new(server, 1, &fork_placement, c, &reactor);
    if (rc == 0) {
        session_thread_prepare(&reactor->loop.thread);
        rc = model_reactor_serve(&reactor->loop);
    }
    model_reactors_free(reactor);
    os_file_close(drain_fd);
    munmap(shared, REPORT_BYTES);
    munmap(c, sizeof(*c));
    return rc;
}
