/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. The master opens what can fail for want of rights or of
 * a free port, forks the workers and then only waits: for signals, and for
 * workers that die. Its listeners stay open, so that connections wait in the
 * kernel while a dead worker is replaced. It never reads from the network.
 *
 *   SIGTERM, SIGINT   workers drain; the second one ends them at once
 *   SIGQUIT           workers end at once
 *   SIGUSR1           logs are reopened, here and in the workers
 *   SIGHUP            the terminal is gone: as SIGTERM; without one nothing, but said
 *
 * Workers are told with SIGTERM (drain) and SIGQUIT (now). A drain that is told
 * twice is one drain, for process managers signal every process of a service.
 */
#include "server/server.h"

#include "log/error.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/signal.h"
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    QUICK_DEATHS = 3, /* so many are replaced at once; then each waits longer */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_LAST_MS = 1000,
    CALM_MS = 10000,     /* a worker that lived this long is forgiven its predecessors */
    KILL_GRACE_MS = 2000 /* from "end now" to SIGKILL */
};
#define MS_NS UINT64_C(1000000)

struct slot {
    pid_t pid; /* 0: none */
    bool ready;
    uint64_t started_ns;
    uint64_t restart_ns; /* when a dead one is replaced */
    unsigned deaths;     /* in quick succession */
};

struct master {
    const struct config *config;
    const struct server_launch *launch;
    const struct model *model;
    char model_why[MODEL_WHY_MAX];
    unsigned workers, threads;
    struct slot *slots;
    struct server_listeners listeners;
    struct log_access_sink access_log;
    int signal_fd;
    int ready_pipe[2];
    unsigned ready_count;
    bool announced;
    bool has_terminal;
    bool stopping;
    bool failed;
    uint64_t kill_ns; /* when workers that are still there are killed */
};

/* ---- workers ---- */

static _Noreturn void be_worker(struct master *m, unsigned index, pid_t master_pid)
{
    close(m->signal_fd);
    close(m->ready_pipe[0]);
    if (!m->announced && m->launch->ready_fd >= 0)
        close(m->launch->ready_fd); /* its reader waits for the end */
    server_listeners_keep(&m->listeners, index, m->threads);
    int status = 1;
    if (os_process_end_with_parent(SIGTERM, master_pid) == 0) {
        struct server_worker_plan plan = {
            .config = m->config,
            .model = m->model,
            .threads = m->threads,
            .index = index,
            .listeners = &m->listeners,
            .access_log = &m->access_log,
            .ready_fd = m->ready_pipe[1],
        };
        status = server_worker_run(&plan);
    }
    server_listeners_close(&m->listeners, false);
    server_listeners_free(&m->listeners);
    free(m->slots);
    exit(status);
}

static void start_worker(struct master *m, unsigned index)
{
    struct slot *slot = &m->slots[index];
    uint64_t now = os_clock_now_ns();
    pid_t master_pid = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_worker(m, index, master_pid);
    if (pid < 0) {
        log_error(LOG_ERROR, "cannot start a worker: %s; trying again", strerror(errno));
        slot->restart_ns = now + BACKOFF_LAST_MS * MS_NS;
        return;
    }
    slot->pid = pid;
    slot->started_ns = now;
    slot->restart_ns = 0;
}

static struct slot *slot_of(struct master *m, pid_t pid)
{
    for (unsigned i = 0; i < m->workers; i++)
        if (m->slots[i].pid == pid)
            return &m->slots[i];
    return NULL;
}

static void tell_death(pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        log_error(LOG_ERROR, "worker %d was killed by signal %d (%s)", (int)pid, WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        log_error(LOG_ERROR, "worker %d ended with status %d", (int)pid, WEXITSTATUS(status));
    else
        log_error(LOG_INFO, "worker %d has ended", (int)pid);
}

/* A worker that dies is replaced at once; one that keeps dying, after a while
 * that grows to a second. */
static void plan_restart(struct slot *slot, uint64_t now)
{
    if (now - slot->started_ns > CALM_MS * MS_NS)
        slot->deaths = 0;
    slot->deaths++;
    uint64_t wait_ms = 0;
    if (slot->deaths > QUICK_DEATHS) {
        unsigned doublings = slot->deaths - QUICK_DEATHS - 1;
        wait_ms = doublings < 4 ? (uint64_t)BACKOFF_FIRST_MS << doublings : BACKOFF_LAST_MS;
    }
    slot->restart_ns = now + wait_ms * MS_NS;
}

static void reap(struct master *m)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct slot *slot = slot_of(m, pid);
        if (!slot)
            continue;
        slot->pid = 0;
        bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!m->stopping || !clean)
            tell_death(pid, status);
        if (m->stopping)
            continue;
        if (!m->announced && !clean) { /* it cannot serve, and has said why */
            m->failed = m->stopping = true;
            continue;
        }
        plan_restart(slot, os_clock_now_ns());
    }
}

static void signal_workers(const struct master *m, int signal)
{
    for (unsigned i = 0; i < m->workers; i++)
        if (m->slots[i].pid > 0)
            (void)kill(m->slots[i].pid, signal); /* gone already is as good */
}

static bool any_worker(const struct master *m)
{
    for (unsigned i = 0; i < m->workers; i++)
        if (m->slots[i].pid > 0)
            return true;
    return false;
}

static void restart_due(struct master *m)
{
    uint64_t now = os_clock_now_ns();
    for (unsigned i = 0; i < m->workers && !m->stopping; i++)
        if (m->slots[i].pid == 0 && now >= m->slots[i].restart_ns)
            start_worker(m, i);
}

/* ---- telling that it serves ---- */

static void announce(struct master *m)
{
    m->announced = true;
    if (!m->launch->quiet) {
        for (size_t i = 0; i < m->listeners.count; i++)
            if (m->listeners.url[i])
                fprintf(stderr, "weir serves %s\n", m->listeners.url[i]);
        fprintf(stderr, "model %s, %u worker%s x %u loop%s; stop with Ctrl-C\n", m->model->name,
                m->workers, m->workers == 1 ? "" : "s", m->threads, m->threads == 1 ? "" : "s");
    }
    if (m->launch->ready_fd < 0)
        return;
    FILE *ready = fdopen(m->launch->ready_fd, "w");
    for (size_t i = 0; ready && i < m->listeners.count; i++)
        if (m->listeners.url[i])
            fprintf(ready, "%s\n", m->listeners.url[i]);
    if (!ready || fclose(ready) != 0)
        log_error(LOG_WARNING, "cannot write to --ready-fd %d: %s", m->launch->ready_fd,
                  strerror(errno));
}

static void read_ready(struct master *m)
{
    char bytes[64];
    ssize_t len = read(m->ready_pipe[0], bytes, sizeof(bytes));
    if (len > 0)
        m->ready_count += (unsigned)len;
    if (!m->announced && m->ready_count >= m->workers)
        announce(m);
}

/* ---- stopping ---- */

static void stop_now(struct master *m)
{
    signal_workers(m, SIGQUIT);
    m->kill_ns = os_clock_now_ns() + KILL_GRACE_MS * MS_NS;
}

static void stop(struct master *m)
{
    if (m->stopping) {
        stop_now(m);
        return;
    }
    m->stopping = true;
    log_error(LOG_INFO, "stopping: no new connections, the present ones finish");
    server_listeners_close(&m->listeners, true);
    signal_workers(m, SIGTERM);
    m->kill_ns = os_clock_now_ns() + m->config->drain_timeout_ns + KILL_GRACE_MS * MS_NS;
}

static void reopen_logs(struct master *m)
{
    int rc = log_access_reopen(&m->access_log);
    if (rc < 0)
        log_error(LOG_ERROR, "cannot reopen the access log: %s", strerror(-rc));
    if (log_error_reopen() < 0)
        log_error(LOG_ERROR, "cannot reopen the error log; the old file is kept");
    signal_workers(m, SIGUSR1);
}

static void hang_up(struct master *m)
{
    if (m->has_terminal)
        stop(m);
    else
        log_error(LOG_WARNING, "SIGHUP: nothing is read anew; restart to change the configuration");
}

static void read_signals(struct master *m)
{
    int signal;
    while ((signal = os_signal_read(m->signal_fd)) > 0) {
        if (signal == SIGTERM || signal == SIGINT) {
            stop(m);
        } else if (signal == SIGQUIT) {
            m->stopping = true;
            stop_now(m);
        } else if (signal == SIGUSR1) {
            reopen_logs(m);
        } else if (signal == SIGHUP) {
            hang_up(m);
        }
    }
    reap(m); /* several deaths may be one SIGCHLD */
}

/* ---- the loop ---- */

static int wait_ms(const struct master *m)
{
    uint64_t due = m->kill_ns ? m->kill_ns : UINT64_MAX;
    for (unsigned i = 0; i < m->workers && !m->stopping; i++)
        if (m->slots[i].pid == 0 && m->slots[i].restart_ns < due)
            due = m->slots[i].restart_ns;
    if (due == UINT64_MAX)
        return -1;
    uint64_t now = os_clock_now_ns();
    return due <= now ? 0 : (int)((due - now) / MS_NS + 1);
}

static void supervise(struct master *m)
{
    while (!m->stopping || any_worker(m)) {
        restart_due(m);
        struct pollfd ends[] = {
            { .fd = m->signal_fd, .events = POLLIN },
            { .fd = m->ready_pipe[0], .events = POLLIN },
        };
        int count = poll(ends, 2, wait_ms(m));
        if (count > 0 && ends[1].revents)
            read_ready(m);
        if (count > 0 && ends[0].revents)
            read_signals(m);
        if (m->failed && m->kill_ns == 0)
            stop_now(m);
        if (m->kill_ns && os_clock_now_ns() >= m->kill_ns)
            signal_workers(m, SIGKILL);
    }
}

static int open_logs(struct master *m)
{
    const struct config *config = m->config;
    enum log_level level = strcmp(config->log_level, "debug") == 0     ? LOG_DEBUG
                           : strcmp(config->log_level, "warning") == 0 ? LOG_WARNING
                           : strcmp(config->log_level, "error") == 0   ? LOG_ERROR
                                                                       : LOG_INFO;
    int rc = log_error_open(config->error_log, level);
    if (rc < 0) {
        log_error(LOG_ERROR, "cannot open the error log %s: %s", config->error_log, strerror(-rc));
        return rc;
    }
    rc = log_access_open(&m->access_log, config->access_log,
                         strcmp(config->log_format, "json") == 0 ? LOG_JSON : LOG_COMBINED);
    if (rc < 0)
        log_error(LOG_ERROR, "cannot open the access log %s: %s", config->access_log,
                  strerror(-rc));
    return rc;
}

static int prepare(struct master *m)
{
    const int signals[] = { SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGHUP, SIGCHLD };
    int rc = open_logs(m);
    if (rc < 0)
        return rc;
    (void)os_process_raise_files(); /* workers reckon with what they got */
    m->slots = calloc(m->workers, sizeof(*m->slots));
    if (!m->slots || pipe2(m->ready_pipe, O_CLOEXEC) < 0)
        return -ENOMEM;
    m->signal_fd = os_signal_open(signals, sizeof(signals) / sizeof(signals[0]));
    if (m->signal_fd < 0)
        return m->signal_fd;
    return server_listeners_open(&m->listeners, m->config->listen, m->workers, m->threads,
                                 m->config->congestion, m->config->listen_by_default);
}

static unsigned threads_of(const struct model *model, const struct config *config)
{
    if (model->threads == MODEL_OWN)
        return 1;
    if (config->threads > 0)
        return config->threads;
    return model->threads == MODEL_PER_CPU ? os_process_cpus() : (unsigned)model->threads;
}

int server_run(const struct config *config, const struct server_launch *launch)
{
    struct master m = {
        .config = config,
        .launch = launch,
        .access_log = { .fd = -1 },
        .has_terminal = isatty(STDERR_FILENO) == 1,
        .signal_fd = -1,
        .ready_pipe = { -1, -1 },
    };
    m.model = model_choose(span_text(config->model), m.model_why);
    CHECK(m.model);
    m.workers = config->workers > 0 ? config->workers : m.model->workers;
    m.threads = threads_of(m.model, config);

    int rc = prepare(&m);
    if (rc == 0)
        supervise(&m);
    server_listeners_close(&m.listeners, true);
    server_listeners_free(&m.listeners);
    log_access_close(&m.access_log);
    for (int i = 0; i < 2; i++)
        if (m.ready_pipe[i] >= 0)
            close(m.ready_pipe[i]);
    if (m.signal_fd >= 0)
        close(m.signal_fd);
    free(m.slots);
    return rc == 0 && !m.failed ? 0 : 1;
}
