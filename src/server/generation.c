/* SPDX-License-Identifier: MIT */
#include "server/generation.h"

#include "base/duration.h"
#include "base/num.h"
#include "config/read.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "server/backoff.h"
#include "server/capacity.h"
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILL_AGAIN_MS = 100 }; /* from one SIGKILL to the next, while a worker is left */

/* ---- failures ---- */

/* Later failures follow from the first one. */
void server_generation_fail(struct server_generation *g, const char *text)
{
    if (!g->failed)
        snprintf(g->why, sizeof(g->why), "%s", text);
    g->failed = true;
}

static void record_failure(void *generation, const char *text)
{
    server_generation_fail(generation, text);
}

static int fail_to(struct server_generation *g, const char *what, const char *path, int rc)
{
    char text[LOG_ERROR_LINE_MAX];
    snprintf(text, sizeof(text), "cannot %s%s: %s", what, path, strerror(-rc));
    server_generation_fail(g, text);
    return rc;
}

/* ---- making one ---- */

/* Sets of sockets: one for each thread that accepts. */
static size_t sets_in_worker(const struct server_generation *g)
{
    switch (g->model->accepts) {
    case STATS_ACCEPTS_EACH:
        return g->threads;
    case STATS_ACCEPTS_ONE:
        return 1;
    case STATS_ACCEPTS_MASTER:
    default:
        return 0;
    }
}

static size_t sets_of(const struct server_generation *g)
{
    size_t sets = sets_in_worker(g) * g->workers;
    return sets > 0 ? sets : 1;
}

static void choose_model(struct server_generation *g)
{
    g->model = model_choose(span_text(g->config->model), g->model_why);
    CHECK(g->model);
    server_capacity_workers(g->config, g->model, &g->workers, &g->threads);
}

/* Certificates, keys, lists of users, and rules of sites. */
static int read_files(struct server_generation *g, struct tls_tickets *tickets)
{
    char why[TLS_WHY_MAX + AUTH_WHY_MAX] = "";
    int rc = server_tls_open(&g->tls, g->config, tickets, why);
    rc = rc < 0 ? rc : server_auth_open(&g->auth, g->config, why);
    rc = rc < 0 ? rc : server_sitefiles_open(&g->sitefiles, &g->config, why);
    if (rc < 0)
        server_generation_fail(g, why);
    return rc;
}

static int prepare_generation(struct server_generation *g, struct server_addresses *addresses,
                              struct tls_tickets *tickets)
{
    const struct config *config = g->config;
    int rc = server_logs_open(&g->logs, g->store, g->why, sizeof(g->why));
    g->failed = rc < 0;
    rc = rc < 0 ? rc : read_files(g, tickets);
    if (rc < 0)
        return rc;
    (void)os_process_raise_files(); /* workers compute their capacity from this limit */
    rc = server_limits_open(&g->limits, config, g->workers);
    if (rc < 0)
        return fail_to(g, "make the limits of addresses", "", rc);
    g->slots = calloc(g->workers, sizeof(*g->slots));
    if (!g->slots || server_roots_note(&g->roots, config) < 0)
        return fail_to(g, "start the workers", "", -ENOMEM);
    for (unsigned i = 0; i < g->workers; i++)
        g->slots[i].logs = (struct ipc_mailbox){ -1, -1 };
    if (pipe2(g->ready_pipe, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(g->go_pipe, O_CLOEXEC) < 0)
        return fail_to(g, "open a pipe", "", -errno);
    log_error_divert(record_failure, g);
    const struct server_listeners_request request = { .store = g->store, .sets = sets_of(g) };
    rc = server_listeners_open(&g->listeners, addresses, &request);
    log_error_divert(NULL, NULL);
    g->listener_tls = rc == 0 ? server_listeners_tls(&g->listeners, sets_of(g)) : NULL;
    if (rc == 0 && !g->listener_tls)
        rc = -ENOMEM;
    if (rc == 0 && g->model->accepts == STATS_ACCEPTS_MASTER)
        rc = server_dispatch_new(g->workers, &g->dispatch);
    return rc < 0 ? fail_to(g, "open the listeners", "", rc) : 0;
}

struct server_generation *server_generation_new(struct config_store *store,
                                                struct server_addresses *addresses,
                                                struct tls_tickets *tickets)
{
    struct server_generation *g = calloc(1, sizeof(*g));
    if (!g) {
        config_read_free(store);
        return NULL;
    }
    *g = (struct server_generation){
        .store = store,
        .config = config_read_result(store),
        .logs = SERVER_LOGS_NONE,
        .ready_pipe = { -1, -1 },
        .go_pipe = { -1, -1 },
    };
    choose_model(g);
    if (prepare_generation(g, addresses, tickets) < 0)
        CHECK(g->failed);
    return g;
}

/* ---- workers ---- */

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        os_file_close(ends[i]);
        ends[i] = -1;
    }
}

static void close_mailboxes(struct server_generation *g)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        ipc_mailbox_close(&g->slots[i].logs);
}

static _Noreturn void run_worker(struct server_generation *g, struct server_addresses *addresses,
                                 const struct server_generation_host *host, unsigned index,
                                 unsigned arena, pid_t master)
{
    size_t sets = sets_in_worker(g), columns = 0;
    int *listeners =
        server_listeners_lay_out(&g->listeners, sets_of(g), index * sets, sets, &columns);
    int status = 1;
    host->leave(host->context, g);
    struct ipc_fdpass_receiver intake = { .fd = -1 };
    if (g->dispatch)
        intake = server_dispatch_keep(g->dispatch, index);
    os_file_close(g->ready_pipe[0]);
    os_file_close(g->go_pipe[1]);
    server_logs_use_error(&g->logs);
    int logs_fd = g->slots[index].logs.reading_fd;
    g->slots[index].logs.reading_fd = -1;
    close_mailboxes(g);
    if (!listeners)
        log_error(LOG_ERROR, "cannot start a worker: %s", strerror(ENOMEM));
    if (listeners && os_process_end_with_parent(SIGTERM, master) == 0) {
        server_listeners_leave(addresses, listeners, sets * columns);
        struct server_worker_plan plan = {
            .config = g->config,
            .model = g->model,
            .threads = g->threads,
            .index = index,
            .master = master,
            .listeners = listeners,
            .listener_count = sets > 0 ? (unsigned)columns : 0,
            .listener_sets = (unsigned)sets,
            .listener_tls = g->listener_tls,
            .intake = intake,
            .access_log = &g->logs.access,
            .logs_fd = logs_fd,
            .stats = server_stats_enter(host->stats, g->config, arena),
            .limits = &g->limits,
            .tls = &g->tls,
            .auth = &g->auth,
            .https_port = server_listeners_tls_port(&g->listeners),
            .ready_fd = g->ready_pipe[1],
            .go_fd = g->go_pipe[0],
        };
        status = server_worker_run(&plan);
    }
    free(listeners);
    exit(status);
}

static void start_worker(struct server_generation *g, struct server_addresses *addresses,
                         const struct server_generation_host *host, unsigned index)
{
    struct server_slot *slot = &g->slots[index];
    uint64_t now = os_clock_now_ns();
    pid_t master = getpid();
    int rc = ipc_mailbox_open(&slot->logs);
    unsigned arena = server_stats_reserve(host->stats, g->config);
    fflush(NULL);
    pid_t pid = rc < 0 ? -1 : fork();
    if (pid == 0)
        run_worker(g, addresses, host, index, arena, master);
    rc = pid < 0 && rc == 0 ? -errno : rc;
    if (pid < 0)
        ipc_mailbox_close(&slot->logs);
    server_stats_forked(host->stats, arena, pid);
    if (pid < 0 && g->state == GENERATION_STARTING) {
        (void)fail_to(g, "start a worker", "", rc);
        return;
    }
    if (pid < 0) {
        log_error(LOG_ERROR, "cannot start a worker: %s; it is tried again in 1 s", strerror(-rc));
        slot->restart_ns = now + SERVER_BACKOFF_LAST_NS;
        return;
    }
    slot->pid = pid;
    slot->started_ns = now;
    slot->restart_ns = 0;
    if (g->dispatch)
        server_dispatch_up(g->dispatch, index);
    if (g->state == GENERATION_DRAINING)
        (void)kill(pid, SIGTERM); /* it drains at once */
}

/* Whether worker `index` is missing and has to be started. */
static bool is_worker_wanted(const struct server_generation *g, unsigned index)
{
    if (g->slots[index].pid > 0)
        return false;
    if (g->state == GENERATION_DRAINING)
        return !g->over && g->dispatch && server_dispatch_waits(g->dispatch, index);
    return g->state == GENERATION_SERVING;
}

void server_generation_start(struct server_generation *g, struct server_addresses *addresses,
                             const struct server_generation_host *host, uint64_t limit_ns)
{
    g->limit_ns = limit_ns;
    for (unsigned i = 0; i < g->workers && !g->failed; i++)
        start_worker(g, addresses, host, i);
}

bool server_generation_is_ready(const struct server_generation *g)
{
    for (unsigned i = 0; i < g->workers; i++)
        if (!g->slots[i].ready)
            return false;
    return true;
}

static int begin_dispatch(struct server_generation *g)
{
    size_t count;
    int *listeners = server_listeners_lay_out(&g->listeners, 1, 0, 1, &count);
    int rc = listeners ? server_dispatch_begin(g->dispatch, listeners, g->listener_tls, count)
                       : -ENOMEM;
    return rc < 0 ? fail_to(g, "wait for connections", "", rc) : 0;
}

int server_generation_go(struct server_generation *g)
{
    static const char bytes[PIPE_BUF]; /* one for each worker, in one atomic write */
    const struct config *config = g->config;
    log_error_divert(record_failure, g);
    int rc = server_listeners_begin(&g->listeners, config->congestion, config->send_timeout_ns);
    log_error_divert(NULL, NULL);
    rc = rc == 0 && g->dispatch ? begin_dispatch(g) : rc;
    if (rc < 0)
        return rc;
    ssize_t written;
    do
        written = write(g->go_pipe[1], bytes, g->workers);
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)g->workers)
        return fail_to(g, "reach the workers", "", -errno);
    close_pipe(g->go_pipe);
    server_logs_use_error(&g->logs);
    server_capacity_warn(g->config, g->model);
    g->limit_ns = 0;
    g->state = GENERATION_SERVING;
    return 0;
}

static void signal_workers(const struct server_generation *g, int signal)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0)
            (void)kill(g->slots[i].pid, signal); /* an error means that it is gone already */
}

void server_generation_rotate_logs(struct server_generation *g,
                                   struct server_logs_rotation *rotation)
{
    struct server_logs_message message = server_logs_rotate(&g->logs, rotation);
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        server_logs_pass(&g->slots[i].logs, g->slots[i].pid, &message, rotation);
}

bool server_generation_is_gone(const struct server_generation *g)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0 || is_worker_wanted(g, i))
            return false;
    return true;
}

/* ---- messages of workers ---- */

static void handle_worker_line(struct server_generation *g, const char *line)
{
    if (line[0] == SERVER_WORKER_FAILED) {
        server_generation_fail(g, line + 1);
        return;
    }
    if (line[0] == SERVER_WORKER_LACKS) {
        server_sandbox_report(&g->sandbox, line + 1);
        return;
    }
    uint64_t index;
    size_t digits = strcspn(line + 1, " ");
    if (line[0] != SERVER_WORKER_READY || !num_parse_u64(span_of(line + 1, digits), &index) ||
        index >= g->workers)
        return;
    snprintf(g->sandbox.in_force, sizeof(g->sandbox.in_force), "%s", line + 2 + digits);
    struct server_slot *slot = &g->slots[index];
    slot->ready = true;
    if (slot->predecessor > 0 && slot->pid > 0)
        log_error(LOG_INFO, "worker %d serves in place of %d", (int)slot->pid,
                  (int)slot->predecessor);
    slot->predecessor = 0;
}

void server_generation_read(struct server_generation *g)
{
    char bytes[512];
    ssize_t len;
    while (g->ready_pipe[0] >= 0 && (len = read(g->ready_pipe[0], bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < len; i++) {
            bool ends = bytes[i] == '\n';
            if (!ends && g->line_len < sizeof(g->line) - 1)
                g->line[g->line_len++] = bytes[i];
            if (!ends)
                continue;
            g->line[g->line_len] = '\0';
            g->line_len = 0;
            handle_worker_line(g, g->line);
        }
    }
}

/* ---- deaths ---- */

static struct server_slot *slot_of(const struct server_generation *g, pid_t pid)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid == pid)
            return &g->slots[i];
    return NULL;
}

bool server_generation_reap(struct server_generation *g, pid_t pid, int status)
{
    struct server_slot *slot = slot_of(g, pid);
    if (!slot)
        return false;
    server_generation_read(g); /* its last messages */
    bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    char text[160];
    server_slot_describe_end(text, sizeof(text), pid, status);
    server_slot_empty(slot);
    unsigned index = (unsigned)(slot - g->slots);
    if (g->dispatch)
        server_dispatch_down(g->dispatch, index);
    if (g->state == GENERATION_STARTING)
        server_generation_fail(g, text);
    else if (g->state == GENERATION_SERVING || !clean)
        log_error(clean ? LOG_INFO : LOG_ERROR, "%s", text);
    if (is_worker_wanted(g, index))
        server_slot_plan_restart(slot, os_clock_now_ns());
    return true;
}

/* ---- the end ---- */

static void close_pipes(struct server_generation *g)
{
    close_pipe(g->ready_pipe);
    close_pipe(g->go_pipe);
    server_logs_drop_error(&g->logs);
}

void server_generation_leave(struct server_generation *g)
{
    close_pipes(g);
    close_mailboxes(g);
    server_logs_close(&g->logs);
    server_dispatch_free(g->dispatch);
    g->dispatch = NULL;
    server_auth_close(&g->auth);
    server_tls_close(&g->tls); /* the private keys leave the memory of this process */
}

static void end_workers(struct server_generation *g, struct server_addresses *addresses, int signal,
                        uint64_t patience_ns)
{
    if (g->dispatch)
        server_dispatch_stop(g->dispatch, signal == SIGTERM);
    /* First: else connections could still arrive after the workers have emptied the backlogs. */
    server_listeners_close(&g->listeners, addresses);
    signal_workers(g, signal);
    close_pipes(g); /* workers that wait for go_pipe end */
    g->state = GENERATION_DRAINING;
    g->over = g->over || signal != SIGTERM;
    uint64_t limit_ns = os_clock_now_ns() + patience_ns;
    if (g->limit_ns == 0 || limit_ns < g->limit_ns)
        g->limit_ns = limit_ns;
}

void server_generation_drain(struct server_generation *g, struct server_addresses *addresses)
{
    end_workers(g, addresses, SIGTERM, g->config->drain_timeout_ns + g->config->kill_timeout_ns);
}

void server_generation_end(struct server_generation *g, struct server_addresses *addresses)
{
    end_workers(g, addresses, SIGQUIT, g->config->kill_timeout_ns);
}

void server_generation_free(struct server_generation *g, struct server_addresses *addresses)
{
    end_workers(g, addresses, SIGKILL, 0);
    server_generation_leave(g);
    server_roots_close(&g->roots);
    server_sitefiles_close(&g->sitefiles);
    config_read_free(g->store);
    server_limits_close(&g->limits);
    free(g->slots);
    free(g->listener_tls);
    free(g);
}

/* ---- time ---- */

/* Kills the workers that are left, and gives up those that do not end. */
static void kill_workers(struct server_generation *g, const struct server_generation_host *host,
                         uint64_t now)
{
    g->over = true;
    g->killed_ns = g->killed_ns > 0 ? g->killed_ns : now;
    g->limit_ns = now + KILL_AGAIN_MS * DURATION_MS;
    signal_workers(g, SIGKILL);
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0 && server_slot_abandon(&g->slots[i], g->killed_ns, now))
            *host->abandoned = true;
}

void server_generation_tick(struct server_generation *g, struct server_addresses *addresses,
                            const struct server_generation_host *host)
{
    uint64_t now = os_clock_now_ns();
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (is_worker_wanted(g, i) && now >= g->slots[i].restart_ns)
            start_worker(g, addresses, host, i);
    if (g->dispatch && now >= server_dispatch_due_ns(g->dispatch))
        server_dispatch_act(g->dispatch);
    if (g->limit_ns == 0 || now < g->limit_ns)
        return;
    if (g->state == GENERATION_STARTING)
        server_generation_fail(g, "the workers were not ready in time");
    else
        kill_workers(g, host, now);
}

uint64_t server_generation_due_ns(const struct server_generation *g)
{
    uint64_t due = g->limit_ns ? g->limit_ns : UINT64_MAX;
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (is_worker_wanted(g, i) && g->slots[i].restart_ns < due)
            due = g->slots[i].restart_ns;
    uint64_t dispatch_ns = g->dispatch ? server_dispatch_due_ns(g->dispatch) : UINT64_MAX;
    return dispatch_ns < due ? dispatch_ns : due;
}
