/* SPDX-License-Identifier: MIT */
#include "server/crew.h"

#include "base/duration.h"
#include "base/num.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "server/backoff.h"
#include "server/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHECK_MS = 1000,    /* from one look at the workers to the next */
    KILL_AGAIN_MS = 100 /* from one SIGKILL to the next, while a worker is left */
};

/* ---- starting ---- */

void server_crew_close_mailboxes(struct server_generation *g)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        ipc_mailbox_close(&g->slots[i].logs);
}

static _Noreturn void run_worker(struct server_generation *g, struct server_addresses *addresses,
                                 const struct server_generation_host *host, unsigned index,
                                 unsigned arena, pid_t master)
{
    size_t columns = 0;
    const unsigned sets = g->worker_sets;
    int *listeners =
        server_listeners_lay_out(&g->listeners, g->sets, (size_t)index * sets, sets, &columns);
    int status = 1;
    host->leave(host->context, g);
    struct ipc_fdpass_receiver intake = { .fd = -1 };
    if (g->dispatch)
        intake = server_dispatch_keep(g->dispatch, index);
    os_file_close(g->ready_pipe[0]);
    os_file_close(g->go_pipe[1]);
    server_logs_use_error(&g->logs);
    server_logs_own(&g->logs);
    int logs_fd = g->slots[index].logs.reading_fd;
    g->slots[index].logs.reading_fd = -1;
    server_crew_close_mailboxes(g);
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
            .listener_sets = sets,
            .listener_tls = g->listener_tls,
            .dead_waiters_until_ns = addresses->dead_waiters_until_ns,
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
        (void)server_generation_cannot(g, "start a worker", rc);
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

void server_crew_start(struct server_generation *g, struct server_addresses *addresses,
                       const struct server_generation_host *host)
{
    for (unsigned i = 0; i < g->workers && !g->failed; i++)
        start_worker(g, addresses, host, i);
}

void server_crew_replace(struct server_generation *g, struct server_addresses *addresses,
                         const struct server_generation_host *host, uint64_t now_ns)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (is_worker_wanted(g, i) && now_ns >= g->slots[i].restart_ns)
            start_worker(g, addresses, host, i);
}

bool server_crew_is_ready(const struct server_generation *g)
{
    for (unsigned i = 0; i < g->workers; i++)
        if (!g->slots[i].ready)
            return false;
    return true;
}

bool server_crew_is_gone(const struct server_generation *g)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0 || is_worker_wanted(g, i))
            return false;
    return true;
}

/* ---- signals and logs ---- */

void server_crew_signal(const struct server_generation *g, int signal)
{
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0)
            (void)kill(g->slots[i].pid, signal); /* an error means that it is gone already */
}

void server_crew_rotate_logs(struct server_generation *g, struct server_logs_rotation *rotation)
{
    struct server_logs_message message = server_logs_rotate(&g->logs, rotation);
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        server_logs_pass(&g->slots[i].logs, g->slots[i].pid, &message, rotation);
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

void server_crew_read(struct server_generation *g)
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

bool server_crew_reap(struct server_generation *g, pid_t pid, int status)
{
    struct server_slot *slot = slot_of(g, pid);
    if (!slot)
        return false;
    server_crew_read(g); /* its last messages */
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

/* The kernel reports no death of such a worker. */
bool server_crew_forget_lost(struct server_generation *g, uint64_t now_ns)
{
    bool lost = false;
    if (g->state != GENERATION_SERVING || now_ns < g->check_ns)
        return false;
    g->check_ns = now_ns + CHECK_MS * DURATION_MS;
    for (unsigned i = 0; i < g->workers; i++) {
        if (!server_slot_is_lost(&g->slots[i], now_ns))
            continue;
        if (g->dispatch)
            server_dispatch_down(g->dispatch, i);
        server_slot_plan_restart(&g->slots[i], now_ns);
        lost = true;
    }
    return lost;
}

void server_crew_kill(struct server_generation *g, struct server_addresses *addresses,
                      const struct server_generation_host *host, uint64_t now_ns)
{
    g->over = true;
    g->killed_ns = g->killed_ns > 0 ? g->killed_ns : now_ns;
    g->limit_ns = now_ns + KILL_AGAIN_MS * DURATION_MS;
    server_crew_signal(g, SIGKILL);
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (g->slots[i].pid > 0 && server_slot_abandon(&g->slots[i], g->killed_ns, now_ns)) {
            addresses->dead_waiters_until_ns = UINT64_MAX;
            *host->abandoned = true;
        }
}

uint64_t server_crew_due_ns(const struct server_generation *g)
{
    uint64_t due = g->state == GENERATION_SERVING ? g->check_ns : UINT64_MAX;
    for (unsigned i = 0; g->slots && i < g->workers; i++)
        if (is_worker_wanted(g, i) && g->slots[i].restart_ns < due)
            due = g->slots[i].restart_ns;
    return due;
}
