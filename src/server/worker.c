/* SPDX-License-Identifier: MIT */
#include "server/worker.h"

#include "log/error.h"
#include "log/loss.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "server/calls.h"
#include "server/capacity.h"
#include "server/compression.h"
#include "server/resources.h"
#include "server/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool server_signal(struct server *server, int signal)
{
    switch (signal) {
    case SIGTERM:
        if (atomic_load(&server->phase) != SERVER_RUNNING)
            return false;
        atomic_store(&server->shared->draining, true);
        atomic_store(&server->phase, SERVER_DRAINING);
        return true;
    case SIGQUIT:
        atomic_store(&server->phase, SERVER_STOPPING);
        return true;
    case SIGUSR1: {
        int rc = model_take_logs(server);
        if (rc < 0)
            log_error(LOG_ERROR, "cannot continue the logs in their new files: %s", strerror(-rc));
        if (rc < 0)
            session_tally_count(server->shared, STATS_log_reopens_failed);
        return false;
    }
    default:
        return false;
    }
}

/* ---- the process ---- */

/* How many threads read the cache. */
static unsigned cache_readers(const struct server_worker_plan *plan,
                              const struct server_capacity *capacity)
{
    const struct model *model = plan->model;
    /* If the master accepts, one loop of the worker receives the connections. */
    unsigned loops = plan->listener_sets > 0 ? plan->listener_sets : 1;
    if (model->serves == STATS_SERVES_THREAD)
        return loops + capacity->connections;
    return loops + (model->serves == STATS_SERVES_POOL ? plan->threads : 0);
}

/* ---- the master ---- */

static void send_line(int fd, char letter, const char *text)
{
    char line[LOG_ERROR_LINE_MAX];
    int len = snprintf(line, sizeof(line) - 1, "%c%s", letter, text);
    size_t end = (size_t)len < sizeof(line) - 1 ? (size_t)len : sizeof(line) - 2;
    for (size_t i = 0; i < end; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[end] = '\n';
    ssize_t written;
    do
        written = write(fd, line, end + 1);
    while (written < 0 && errno == EINTR); /* any other error: the master is gone */
}

static void send_failure(void *context, const char *text)
{
    const struct server_worker_plan *plan = context;
    send_line(plan->ready_fd, SERVER_WORKER_FAILED, text);
}

/* Reports to the master that this worker is ready, and waits until all workers are. False: do not
 * serve. */
static bool may_serve(const struct server_worker_plan *plan, const struct server_sandbox *sandbox)
{
    char byte, ready[16 + SERVER_SANDBOX_TEXT_MAX];
    snprintf(ready, sizeof(ready), "%u %s", plan->index, sandbox->in_force);
    if (sandbox->missing[0])
        send_line(plan->ready_fd, SERVER_WORKER_LACKS, sandbox->missing);
    send_line(plan->ready_fd, SERVER_WORKER_READY, ready);
    ssize_t len = 1;
    if (plan->go_fd >= 0)
        while ((len = read(plan->go_fd, &byte, 1)) < 0 && errno == EINTR)
            continue;
    os_file_close(plan->go_fd);
    return len == 1;
}

/* ---- the process ---- */

/* Passwords are compared, and files are fetched, in threads that start with the first need. A
 * process for one connection does both itself. */
static unsigned calls_of(const struct server_worker_plan *plan, bool ring)
{
    const unsigned groups = server_calls_of_model(plan->model, ring);
    return groups | (plan->model->serves != STATS_SERVES_PROCESS ? CALLS_THREADS : 0);
}

static int run_model(struct server_resources *resources, const struct server_worker_plan *plan,
                     const struct server_capacity *capacity, size_t files)
{
    /* SIGINT and SIGHUP come from a terminal, to all processes; only the master acts on them. */
    const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD };
    struct server server = {
        .shared = &resources->shared,
        .listeners = plan->listeners,
        .listener_tls = plan->listener_tls,
        .listener_count = plan->listener_count,
        .listener_sets = plan->listener_sets,
        .dead_waiters_until_ns = plan->dead_waiters_until_ns,
        .passed = plan->intake,
        .threads = plan->threads,
        .cache_readers = cache_readers(plan, capacity),
        .connections_max = capacity->connections,
        .drain_idle_ns = plan->config->drain_idle_ns,
        .pool_queue = (unsigned)plan->config->pool_queue,
        .pool_sticky = strcmp(plan->config->pool_policy, "sticky") == 0,
        .drain_timeout_ns = plan->config->drain_timeout_ns,
        .logs_fd = plan->logs_fd,
        .signal_fd = os_signal_open(signals, sizeof(signals) / sizeof(signals[0])),
    };
    if (server.signal_fd < 0) {
        log_error(LOG_ERROR, "cannot receive signals: %s", strerror(-server.signal_fd));
        return server.signal_fd;
    }
    server.passed.files_max = files;
    if (server.passed.tally) /* one waits in the channel, so that an idle one makes space for it */
        atomic_store(&server.passed.tally->most, server.connections_max + 1);
    model_prepare(plan->model, &server);
    struct server_sandbox sandbox;
    struct server_sandbox_worker worker = {
        .config = plan->config,
        .sites = &resources->shared,
        .calls = calls_of(plan, server.rings != NULL),
        .master = plan->master,
        .totals = &resources->totals.stats,
    };
    int rc = server_sandbox_confine_worker(&worker, &sandbox);
    bool go = rc == 0 && may_serve(plan, &sandbox);
    log_error_divert(NULL, NULL);
    os_file_close(plan->ready_fd);
    if (go)
        rc = plan->model->serve(&server);
    model_discard(&server);
    os_file_close(server.signal_fd);
    if (go && rc < 0)
        log_error(LOG_ERROR, "model %s stopped with an error: %s", plan->model->name,
                  strerror(-rc));
    return rc;
}

/* Passwords are in the memory of this process. */
static int forbid_core(void)
{
    int rc = os_process_forbid_core();
    if (rc < 0)
        log_error(LOG_ERROR, "cannot forbid core dumps, which would have passwords: %s",
                  strerror(-rc));
    return rc;
}

int server_worker_run(const struct server_worker_plan *plan)
{
    struct server_resources resources = { 0 };
    size_t files = os_process_raise_files();
    os_process_reserve_files(files);
    os_process_limit_heaps(os_process_cpus(0)); /* no more threads than that allocate at once */
    struct server_capacity capacity =
        server_capacity_of(plan->config, plan->model, plan->threads, files);
    plan->access_log->loss = log_loss_new();
    struct server_worker_plan told = *plan;
    if (plan->go_fd >= 0)
        log_error_divert(send_failure, &told);
    int rc = server_resources_open(&resources, plan->config, &capacity,
                                   cache_readers(plan, &capacity), plan->access_log, plan->stats);
    if (rc == 0)
        rc = server_compression_begin(&resources, plan->config, plan->model, true);
    if (rc == 0)
        server_resources_use_tls(&resources, plan->config, plan->tls, plan->https_port);
    if (rc == 0)
        rc = server_resources_use_auth(&resources, plan->config, plan->auth);
    if (rc == 0 && plan->auth->count > 0)
        rc = forbid_core();
    if (rc == 0 && plan->tls->server)
        rc = tls_tickets_protect(plan->tls->tickets);
    if (rc == 0)
        rc = server_sandbox_begin(plan->config->sandbox);
    if (rc == 0)
        rc = server_resources_become(plan->config->user);
    if (rc == 0) /* after the change of user, which clears this setting in the kernel */
        rc = os_process_end_with_parent(SIGTERM, plan->master);
    if (rc == 0 && plan->index == 0)
        server_resources_warn_of_rights(&resources, plan->config);
    resources.shared.limits = server_limits_join(plan->limits, plan->index);
    if (rc == 0)
        rc = run_model(&resources, plan, &capacity, files);
    log_error_divert(NULL, NULL);
    server_resources_close(&resources);
    log_access_close(plan->access_log);
    log_loss_end(plan->access_log->loss);
    os_file_close(plan->logs_fd);
    return rc == 0 ? 0 : 1;
}
