/* SPDX-License-Identifier: MIT */
#include "server/page.h"

#include "base/duration.h"
#include "config/read.h"
#include "ipc/fdpass.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "page/page.h"
#include "server/backoff.h"
#include "server/logs.h"
#include "server/resources.h"
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALM_MS = 5000 };
#define COMM "weir-stats" /* the name in /proc/PID/comm */

/* ---- addresses ---- */

static void keep_reason(void *why, const char *text)
{
    snprintf(why, LOG_ERROR_LINE_MAX, "%s", text);
}

/* Opens the addresses and listens at once, so that every error shows here. */
static int open_listeners(struct server_page *page, const struct config_store *store, bool any_port,
                          char why[LOG_ERROR_LINE_MAX])
{
    const char *congestion = config_read_result(store)->congestion;
    const struct server_listeners_request request = {
        .store = store, .page = true, .any_port = any_port, .sets = 1
    };
    log_error_divert(keep_reason, why);
    struct server_listeners *listeners = &page->next.listeners;
    int rc = server_listeners_open(listeners, &page->addresses, &request);
    if (rc == 0)
        rc = server_listeners_begin(listeners, congestion, UINT64_MAX);
    log_error_divert(NULL, NULL);
    if (rc < 0)
        server_listeners_close(listeners, &page->addresses);
    return rc;
}

/* Whether the page has a port that the kernel picked, perhaps inherited. It keeps that port. */
static bool has_another_port(const struct server_page *page)
{
    const struct server_address *a = page->addresses.first;
    while (a && os_socket_same(&a->asked, &a->got))
        a = a->next;
    return a != NULL;
}

/* The default address: a failure does not prevent the server from serving. */
static int open_default_listeners(struct server_page *page, const struct config_store *store,
                                  char why[LOG_ERROR_LINE_MAX])
{
    int rc = has_another_port(page) ? -EADDRINUSE : open_listeners(page, store, false, why);
    if (rc < 0)
        rc = open_listeners(page, store, true, why);
    if (rc < 0)
        log_error(LOG_WARNING, "there is no statistics page: %s", why);
    return 0;
}

static char *copy_text(const char *text)
{
    char *copied = text ? strdup(text) : NULL;
    CHECK(!text || copied);
    return copied;
}

int server_page_prepare(struct server_page *page, const struct server_stats *stats,
                        struct server_generation *g, char *why, size_t size)
{
    const struct config *config = g->config;
    char text[LOG_ERROR_LINE_MAX] = "";
    if (config->stats_password && !auth_hash_can_use(config->stats_password)) {
        snprintf(why, size,
                 "stats-password: this system does not support this kind of hash; "
                 "`weir password` makes a supported one");
        return -EINVAL;
    }
    page->next = (struct server_page_version){ .by_default = config->stats_listen_by_default };
    bool wanted = config->stats_listen[0] && stats->segment.header;
    int rc = 0;
    page->addresses.reserved = &g->listeners;
    if (wanted && page->next.by_default)
        rc = open_default_listeners(page, g->store, text);
    else if (wanted)
        rc = open_listeners(page, g->store, false, text);
    page->addresses.reserved = NULL;
    if (rc < 0) {
        snprintf(why, size, "%s", text);
        return rc;
    }
    page->next.tls = g->tls.page;
    g->tls.page = NULL;
    page->next.password = copy_text(config->stats_password);
    page->next.user = copy_text(config->user);
    page->next.sandbox = copy_text(config->sandbox);
    page->prepared = true;
    return 0;
}

/* Frees the certificates, and clears their private keys. */
static void drop_keys(struct server_page_version *version)
{
    tls_server_free(version->tls);
    version->tls = NULL;
}

static void drop_version(struct server_page *page, struct server_page_version *version)
{
    server_listeners_close(&version->listeners, &page->addresses);
    drop_keys(version);
    free(version->password);
    free(version->user);
    free(version->sandbox);
    *version = (struct server_page_version){ 0 };
}

void server_page_cancel(struct server_page *page)
{
    if (page->prepared)
        drop_version(page, &page->next);
    page->prepared = false;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_version(const struct server_page_version *a,
                            const struct server_page_version *b)
{
    bool same = !a->tls && !b->tls && a->listeners.count == b->listeners.count &&
                same_text(a->password, b->password) && same_text(a->user, b->user) &&
                same_text(a->sandbox, b->sandbox);
    for (size_t i = 0; same && i < a->listeners.count; i++)
        same = a->listeners.each[i].address == b->listeners.each[i].address;
    return same;
}

/* ---- the process ---- */

/* Closes what connects the master with the process. */
static void disconnect_process(struct server_page *page)
{
    os_file_close(page->alive_fd);
    page->alive_fd = -1;
    ipc_mailbox_close(&page->logs);
}

/* Asks the process to end. An earlier one that has not ended yet is killed. */
static void dismiss_process(struct server_page *page)
{
    disconnect_process(page);
    if (page->pid > 0 && page->leaving > 0)
        (void)kill(page->leaving, SIGKILL);
    if (page->pid > 0)
        page->leaving = page->pid;
    page->pid = 0;
    page->restart_ns = 0;
    page->deaths = 0;
}

void server_page_commit(struct server_page *page)
{
    if (!page->prepared)
        return;
    if (!is_same_version(&page->now, &page->next))
        dismiss_process(page);
    drop_version(page, &page->now);
    page->now = page->next;
    server_listeners_serve(&page->now.listeners);
    page->next = (struct server_page_version){ 0 };
    page->prepared = false;
}

static _Noreturn void run_process(struct server_page *page,
                                  const struct server_generation_host *host, int master_fd)
{
    struct stats_segment *segment = &host->stats->segment;
    const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 };
    size_t count = 0;
    int *listeners = server_listeners_lay_out(&page->now.listeners, 1, 0, 1, &count);
    bool *listener_tls = server_listeners_tls(&page->now.listeners, 1);
    os_process_name(COMM);
    int logs_fd = page->logs.reading_fd;
    page->logs.reading_fd = -1;
    disconnect_process(page);
    drop_keys(&page->next);
    host->leave(host->context, NULL);
    if (listeners)
        server_listeners_leave(&page->addresses, listeners, count);
    int signal_fd = os_signal_open(signals, sizeof(signals) / sizeof(signals[0]));
    int rc = !listeners || !listener_tls ? -ENOMEM
             : signal_fd < 0             ? signal_fd
                                         : stats_segment_only_read(segment);
    if (rc < 0)
        log_error(LOG_ERROR, "cannot start the statistics page: %s", strerror(-rc));
    server_logs_own_error();
    if (rc == 0)
        rc = server_sandbox_begin(page->now.sandbox);
    if (rc == 0)
        rc = server_resources_become(page->now.user);
    if (rc == 0)
        rc = server_sandbox_confine_page(page->now.sandbox, getppid());
    struct page_plan plan = {
        .listeners = listeners,
        .listener_tls = listener_tls,
        .listener_count = count,
        .tls = page->now.tls,
        .segment = segment,
        .password = page->now.password,
        .master_fd = master_fd,
        .signal_fd = signal_fd,
        .logs_fd = logs_fd,
    };
    exit(rc == 0 ? page_run(&plan) : 1);
}

/* The process has ended: plans when the next one starts. */
static void schedule_restart(struct server_page *page, uint64_t now)
{
    page->pid = 0;
    disconnect_process(page);
    if (now - page->started_ns >= CALM_MS * DURATION_MS)
        page->deaths = 0;
    page->deaths++;
    page->restart_ns = now + server_backoff_ns(page->deaths);
}

/* Whether the page has addresses and no process. */
static bool is_page_wanted(const struct server_page *page)
{
    return page->pid == 0 && page->now.listeners.count > 0 && !page->addresses.handed_over;
}

/* The process may read the files of arenas, and cannot open them as its user. */
static void send_new_arenas(struct server_page *page, const struct stats_segment *segment)
{
    const struct ipc_fdpass_channel channel = { .sending_fd = page->alive_fd };
    const struct ipc_fdpass_origin none = { .tls = false };
    int rc = 0;
    while (rc == 0 && page->arenas < segment->arena_fd_count) {
        int fd = stats_arena_reopen(segment->arena_fds[page->arenas], O_RDONLY);
        rc = fd < 0 ? fd : ipc_fdpass_send(&channel, fd, &none, page->arenas + 1);
        os_file_close(fd < 0 ? -1 : fd);
        page->arenas += rc == 0; /* after an error the next tick tries again */
    }
}

static void start_process(struct server_page *page, const struct server_generation_host *host,
                          uint64_t now)
{
    struct ipc_fdpass_channel channel;
    page->started_ns = now;
    int rc = ipc_mailbox_open(&page->logs);
    if (rc == 0)
        rc = ipc_fdpass_open(&channel);
    if (rc == 0) {
        stats_arena_open_all(&host->stats->segment);
        page->arenas = host->stats->segment.arena_fd_count;
        page->alive_fd = channel.sending_fd;
        fflush(NULL);
        page->pid = fork();
        if (page->pid == 0)
            run_process(page, host, channel.receiving_fd);
        rc = page->pid < 0 ? -errno : 0;
        os_file_close(channel.receiving_fd);
    }
    if (rc == 0)
        return;
    log_error(LOG_ERROR, "cannot start the statistics page: %s; it is tried again", strerror(-rc));
    schedule_restart(page, now);
}

uint64_t server_page_tick(struct server_page *page, const struct server_generation_host *host,
                          uint64_t due_ns)
{
    uint64_t now = os_clock_now_ns();
    if (page->pid > 0)
        send_new_arenas(page, &host->stats->segment);
    if (is_page_wanted(page) && now >= page->restart_ns)
        start_process(page, host, now);
    return is_page_wanted(page) && page->restart_ns < due_ns ? page->restart_ns : due_ns;
}

bool server_page_reap(struct server_page *page, pid_t pid, int status)
{
    if (pid == page->leaving) {
        page->leaving = 0;
        return true;
    }
    if (pid != page->pid)
        return false;
    if (WIFSIGNALED(status))
        log_error(LOG_WARNING, "the process of the statistics page, %d, was killed by signal %d",
                  (int)pid, WTERMSIG(status));
    else
        log_error(WEXITSTATUS(status) ? LOG_WARNING : LOG_INFO,
                  "the process of the statistics page, %d, has ended", (int)pid);
    schedule_restart(page, os_clock_now_ns());
    return true;
}

/* ---- the end ---- */

void server_page_hand_over(struct server_page *page)
{
    page->addresses.handed_over = true;
    dismiss_process(page);
}

void server_page_leave(struct server_page *page)
{
    drop_keys(&page->now);
    drop_keys(&page->next);
    disconnect_process(page);
    server_listeners_leave(&page->addresses, NULL, 0);
}

static void kill_and_wait(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL); /* it may be dead already; it is not reaped yet */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Asks the process to end, and waits for it. */
static void wait_for_end(struct server_page *page)
{
    struct pollfd end = { .fd = page->alive_fd, .events = POLLIN };
    if (page->pid == 0 || shutdown(page->alive_fd, SHUT_WR) < 0)
        return;
    while (poll(&end, 1, 2 * PAGE_ENDING_MS) < 0 && errno == EINTR)
        continue;
}

void server_page_end(struct server_page *page)
{
    wait_for_end(page);
    kill_and_wait(page->pid);
    kill_and_wait(page->leaving);
    disconnect_process(page);
    server_page_cancel(page);
    drop_version(page, &page->now);
    server_listeners_close_all(&page->addresses);
}
