/* SPDX-License-Identifier: MIT */
#include "server/worker.h"

#include "base/buf.h"
#include "log/error.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "server/capacity.h"
#include "session/hosts.h"
#include "session/tally.h"
#include "session/worker.h"
#include "site/mime.h"
#include "site/site.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the sessions of the process share, and what it was made of. */
struct holdings {
    struct session_shared shared;
    struct session_totals totals;
    struct site_mime *mime;
    struct session_site *sites;
    struct site_options *options;
    char **fields;
};

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
        int rc = log_access_reopen(server->shared->log);
        if (rc < 0)
            log_error(LOG_ERROR, "cannot reopen the access log: %s; the old file is kept",
                      strerror(-rc));
        if (log_error_reopen() < 0)
            log_error(LOG_ERROR, "cannot reopen the error log; the old file is kept");
        return false;
    }
    default:
        return false;
    }
}

/* ---- sites ---- */

/* "Name: value" lines, as they stand in an answer. */
static struct buf join_fields(const char *const *headers)
{
    size_t len = 0;
    for (const char *const *header = headers; header && *header; header++)
        len += strlen(*header) + 2;
    struct buf text = buf_over(malloc(len + 1), len);
    for (const char *const *header = headers; text.at && header && *header; header++) {
        buf_add(&text, span_text(*header));
        buf_add(&text, SPAN("\r\n"));
    }
    return text;
}

static int open_site(struct holdings *h, const struct config *config, unsigned index)
{
    const struct config_site *from = &config->sites[index];
    h->options[index] = (struct site_options){
        .name = from->name,
        .root = from->root,
        .index = from->index,
        .fallback = from->fallback,
        .error_pages = from->error_pages,
        .listing = from->listing,
        .precompressed = from->precompressed,
        .hidden = from->hidden,
        .body_max = (size_t)config->cache_file_max_bytes,
    };
    struct buf fields = join_fields(from->headers);
    h->fields[index] = fields.at;
    if (!fields.at)
        return -ENOMEM;
    struct session_site *site = &h->sites[index];
    const char *what = from->root;
    int rc = site_open(&site->site, &h->options[index], h->mime, &what);
    if (rc < 0) {
        log_error(LOG_ERROR, "site %s: cannot open %s: %s", from->name, what, strerror(-rc));
        return rc;
    }
    site->fields = buf_span(&fields);
    site->hosts = from->hosts;
    site->stats_site = h->shared.stats ? stats_segment_site(h->shared.stats, from->name) : 0;
    if (site->fields.len > SESSION_FIELDS_MAX) {
        log_error(LOG_ERROR, "site %s: its header lines are longer than %d bytes together",
                  from->name, SESSION_FIELDS_MAX);
        return -E2BIG;
    }
    h->shared.site_count = index + 1;
    return 0;
}

static int open_sites(struct holdings *h, const struct config *config)
{
    h->mime = site_mime_new(NULL);
    h->sites = calloc(config->site_count, sizeof(*h->sites));
    h->options = calloc(config->site_count, sizeof(*h->options));
    h->fields = calloc(config->site_count, sizeof(*h->fields));
    if (!h->mime || !h->sites || !h->options || !h->fields)
        return -ENOMEM;
    h->shared.sites = h->sites;
    int rc = 0;
    for (unsigned i = 0; i < config->site_count && rc == 0; i++)
        rc = open_site(h, config, i);
    if (rc < 0)
        return rc;
    h->shared.hosts = session_hosts_new(h->sites, h->shared.site_count);
    return h->shared.hosts ? 0 : -ENOMEM;
}

static void free_holdings(struct holdings *h, unsigned site_count)
{
    session_totals_done(&h->totals);
    site_cache_free(h->shared.cache);
    session_hosts_free(h->shared.hosts);
    for (size_t i = 0; i < h->shared.site_count; i++)
        site_close(h->sites[i].site);
    for (unsigned i = 0; h->fields && i < site_count; i++)
        free(h->fields[i]);
    free(h->fields);
    free(h->options);
    free(h->sites);
    site_mime_free(h->mime);
}

/* ---- the process ---- */

/* Threads that look into the cache. */
static unsigned cache_readers(const struct server_worker_plan *plan, size_t files)
{
    const struct model *model = plan->model;
    /* Where the master accepts, a loop takes in what it sends. */
    unsigned loops = plan->listener_sets > 0 ? plan->listener_sets : 1;
    if (model->threads == MODEL_PER_CONNECTION)
        return loops + server_capacity_connections(plan->config, files);
    bool beside = model->accepts != MODEL_ACCEPTS_EACH && model->threads != MODEL_OWN;
    return loops + (beside ? plan->threads : 0);
}

static int hold(struct holdings *h, const struct server_worker_plan *plan, size_t files)
{
    const struct config *config = plan->config;
    struct site_cache_limits limits = {
        .policy = strcmp(config->cache_policy, "lru") == 0 ? SITE_CACHE_LRU : SITE_CACHE_SIEVE,
        .bytes = (size_t)config->cache_size_bytes,
        .entries = (size_t)config->cache_entries,
        .descriptors = server_capacity_cache_files(files),
    };
    struct session_shared *shared = &h->shared;
    shared->cache = site_cache_new(limits, cache_readers(plan, files));
    shared->log = plan->access_log;
    shared->stats = plan->stats;
    shared->server_field = config->server_header ? SPAN("Server: weir\r\n") : span_of(NULL, 0);
    shared->header_timeout_ns = config->header_timeout_ns;
    shared->body_timeout_ns = config->body_timeout_ns;
    shared->idle_timeout_ns = config->idle_timeout_ns;
    shared->drain_idle_ns = config->drain_idle_ns;
    shared->send_timeout_ns = config->send_timeout_ns;
    int rc = shared->cache ? open_sites(h, config) : -ENOMEM;
    if (rc == 0)
        session_totals_init(&h->totals, shared);
    if (rc == -ENOMEM)
        log_error(LOG_ERROR, "not enough memory for a cache of %llu bytes",
                  (unsigned long long)config->cache_size_bytes);
    return rc;
}

int server_worker_become(const char *name)
{
    struct os_process_user user;
    int rc = os_process_find_user(name, &user);
    if (rc == 0)
        rc = os_process_become(&user, name);
    if (rc < 0)
        log_error(LOG_ERROR, "cannot become user %s: %s", name, strerror(-rc));
    return rc;
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
    while (written < 0 && errno == EINTR); /* a master that is gone needs no news */
}

static void send_failure(void *context, const char *text)
{
    const struct server_worker_plan *plan = context;
    send_line(plan->ready_fd, SERVER_WORKER_FAILED, text);
}

/* Tells the master that all is ready, and waits until all others are too. */
static bool may_serve(const struct server_worker_plan *plan)
{
    char byte, index[16];
    snprintf(index, sizeof(index), "%u", plan->index);
    send_line(plan->ready_fd, SERVER_WORKER_READY, index);
    ssize_t len = 1;
    if (plan->go_fd >= 0)
        while ((len = read(plan->go_fd, &byte, 1)) < 0 && errno == EINTR)
            continue;
    os_file_close(plan->go_fd);
    return len == 1;
}

/* ---- the process ---- */

static int serve(struct holdings *h, const struct server_worker_plan *plan, size_t files)
{
    /* SIGINT and SIGHUP come from a terminal, to everybody: they are the master's. */
    const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGCHLD };
    struct server server = {
        .shared = &h->shared,
        .listeners = plan->listeners,
        .listener_count = plan->listener_count,
        .listener_sets = plan->listener_sets,
        .intake = plan->intake,
        .threads = plan->threads,
        .cache_readers = cache_readers(plan, files),
        .connections_max = server_capacity_connections(plan->config, files),
        .drain_idle_ns = plan->config->drain_idle_ns,
        .pool_queue = (unsigned)plan->config->pool_queue,
        .pool_sticky = strcmp(plan->config->pool_policy, "sticky") == 0,
        .drain_timeout_ns = plan->config->drain_timeout_ns,
        .signal_fd = os_signal_open(signals, sizeof(signals) / sizeof(signals[0])),
    };
    if (server.signal_fd < 0) {
        log_error(LOG_ERROR, "cannot receive signals: %s", strerror(-server.signal_fd));
        return server.signal_fd;
    }
    server.intake.files_max = files;
    if (server.intake.tally)
        atomic_store(&server.intake.tally->most, server.connections_max);
    bool go = may_serve(plan);
    log_error_divert(NULL, NULL);
    os_file_close(plan->ready_fd);
    int rc = go ? plan->model->run(&server) : 0;
    os_file_close(server.signal_fd);
    if (rc < 0)
        log_error(LOG_ERROR, "model %s ended: %s", plan->model->name, strerror(-rc));
    return rc;
}

int server_worker_run(const struct server_worker_plan *plan)
{
    struct holdings h = { 0 };
    size_t files = os_process_raise_files();
    struct server_worker_plan told = *plan;
    if (plan->go_fd >= 0)
        log_error_divert(send_failure, &told);
    int rc = plan->config->user ? server_worker_become(plan->config->user) : 0;
    if (rc == 0) /* after a change of user, which makes the kernel forget it */
        rc = os_process_end_with_parent(SIGTERM, plan->master);
    if (rc == 0)
        rc = hold(&h, plan, files);
    if (rc == 0)
        rc = serve(&h, plan, files);
    log_error_divert(NULL, NULL);
    free_holdings(&h, plan->config->site_count);
    log_access_close(plan->access_log);
    return rc == 0 ? 0 : 1;
}
