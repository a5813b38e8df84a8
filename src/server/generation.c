/* SPDX-License-Identifier: MIT */
#include "server/generation.h"

#include "config/read.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "server/capacity.h"
#include "server/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int server_generation_cannot(struct server_generation *g, const char *what, int rc)
{
    char text[LOG_ERROR_LINE_MAX];
    snprintf(text, sizeof(text), "cannot %s: %s", what, strerror(-rc));
    server_generation_fail(g, text);
    return rc;
}

/* ---- making one ---- */

/* How many sets of sockets a worker gets: one for each thread that accepts. */
static unsigned sets_in_worker(const struct model *model, unsigned threads)
{
    switch (model->accepts) {
    case STATS_ACCEPTS_EACH:
        return threads;
    case STATS_ACCEPTS_ONE:
        return 1;
    case STATS_ACCEPTS_MASTER:
    default:
        return 0;
    }
}

static void choose_model(struct server_generation *g)
{
    g->model = model_choose(span_text(g->config->model), g->model_why);
    CHECK(g->model);
    server_capacity_workers(g->config, g->model, &g->workers, &g->threads);
    g->worker_sets = sets_in_worker(g->model, g->threads);
    g->sets = g->worker_sets > 0 ? g->worker_sets * g->workers : 1;
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
        return server_generation_cannot(g, "make the limits of addresses", rc);
    g->slots = calloc(g->workers, sizeof(*g->slots));
    if (!g->slots || server_roots_note(&g->roots, config) < 0)
        return server_generation_cannot(g, "start the workers", -ENOMEM);
    for (unsigned i = 0; i < g->workers; i++)
        g->slots[i].logs = (struct ipc_mailbox){ -1, -1 };
    if (pipe2(g->ready_pipe, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(g->go_pipe, O_CLOEXEC) < 0)
        return server_generation_cannot(g, "open a pipe", -errno);
    log_error_divert(record_failure, g);
    const struct server_listeners_request request = { .store = g->store, .sets = g->sets };
    rc = server_listeners_open(&g->listeners, addresses, &request);
    log_error_divert(NULL, NULL);
    g->listener_tls = rc == 0 ? server_listeners_tls(&g->listeners, g->sets) : NULL;
    if (rc == 0 && !g->listener_tls)
        rc = -ENOMEM;
    if (rc == 0 && g->model->accepts == STATS_ACCEPTS_MASTER)
        rc = server_dispatch_new(g->workers, &g->dispatch);
    return rc < 0 ? server_generation_cannot(g, "open the listeners", rc) : 0;
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

/* ---- serving ---- */

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        os_file_close(ends[i]);
        ends[i] = -1;
    }
}

void server_generation_start(struct server_generation *g, struct server_addresses *addresses,
                             const struct server_generation_host *host, uint64_t limit_ns)
{
    g->limit_ns = limit_ns;
    server_crew_start(g, addresses, host);
}

static int begin_dispatch(struct server_generation *g)
{
    size_t count;
    int *listeners = server_listeners_lay_out(&g->listeners, 1, 0, 1, &count);
    int rc = listeners ? server_dispatch_begin(g->dispatch, listeners, g->listener_tls, count)
                       : -ENOMEM;
    return rc < 0 ? server_generation_cannot(g, "wait for connections", rc) : 0;
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
        return server_generation_cannot(g, "reach the workers", -errno);
    close_pipe(g->go_pipe);
    server_listeners_serve(&g->listeners);
    server_logs_use_error(&g->logs);
    server_capacity_warn(g->config, g->model);
    server_tls_warn(&g->tls);
    g->limit_ns = 0;
    g->state = GENERATION_SERVING;
    return 0;
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
    server_crew_close_mailboxes(g);
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
    server_crew_signal(g, signal);
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

void server_generation_tick(struct server_generation *g, struct server_addresses *addresses,
                            const struct server_generation_host *host)
{
    const uint64_t now = os_clock_now_ns();
    server_crew_replace(g, addresses, host, now);
    if (g->dispatch && now >= server_dispatch_due_ns(g->dispatch))
        server_dispatch_act(g->dispatch);
    if (g->limit_ns == 0 || now < g->limit_ns)
        return;
    if (g->state == GENERATION_STARTING)
        server_generation_fail(g, "the workers were not ready in time");
    else
        server_crew_kill(g, addresses, host, now);
}

uint64_t server_generation_due_ns(const struct server_generation *g)
{
    uint64_t due = server_crew_due_ns(g);
    due = g->limit_ns != 0 && g->limit_ns < due ? g->limit_ns : due;
    const uint64_t dispatch_ns = g->dispatch ? server_dispatch_due_ns(g->dispatch) : UINT64_MAX;
    return dispatch_ns < due ? dispatch_ns : due;
}
