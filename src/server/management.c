/* SPDX-License-Identifier: MIT */
#include "server/management.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "server/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_NS DURATION_SECOND

/* ---- commands ---- */

static enum server_control_outcome on_reload(void *context, struct server_control_client *client)
{
    struct server_management *c = context;
    if (c->master->reload(c->master->context))
        return SERVER_CONTROL_LATER;
    server_control_say(
        client, "weir: a reload is not possible now: the server is stopping or being replaced\n");
    return SERVER_CONTROL_FAILED;
}

static enum server_control_outcome on_stop(void *context, struct server_control_client *client)
{
    struct server_management *c = context;
    (void)client;
    c->progress_due_ns = os_clock_now_ns() + PROGRESS_NS;
    c->master->stop(c->master->context, true);
    return SERVER_CONTROL_LATER;
}

static enum server_control_outcome on_stop_now(void *context, struct server_control_client *client)
{
    struct server_management *c = context;
    (void)client;
    c->master->stop(c->master->context, false);
    return SERVER_CONTROL_LATER;
}

static enum server_control_outcome on_status(void *context, struct server_control_client *client)
{
    const struct server_management *c = context;
    server_control_say(client, "since %lld\n", (long long)c->since_s);
    const struct server_listeners *listeners = c->master->serving(c->master->context);
    for (size_t i = 0; listeners && i < listeners->count; i++) {
        char url[SERVER_URL_MAX + 1];
        if (!listeners->each[i].address)
            continue;
        server_listeners_url(&listeners->each[i], url);
        server_control_say(client, "%s\n", url);
    }
    return SERVER_CONTROL_OK;
}

static const struct server_control_command commands[] = {
    { "reload", on_reload }, { "stop", on_stop }, { "stop now", on_stop_now },
    { "status", on_status }, { NULL, NULL },
};

/* ---- opening ---- */

/* Without them, clients make full handshakes: new keys are made when they are needed. */
static void adopt_tickets(struct server_management *management)
{
    int rc = tls_tickets_adopt(&management->tickets, management->inherited.tickets_fd);
    management->inherited.tickets_fd = -1;
    if (rc < 0)
        log_error(LOG_WARNING, "the keys of session tickets cannot be inherited: %s",
                  strerror(-rc));
}

int server_management_open_signals(void)
{
    const int signals[] = { SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD };
    const int fd = os_signal_open(signals, sizeof(signals) / sizeof(signals[0]));
    if (fd < 0)
        log_error(LOG_ERROR, "cannot receive signals: %s", strerror(-fd));
    return fd;
}

int server_management_open(struct server_management *ret_management,
                           const struct server_management_master *master, int ready_fd)
{
    struct server_management *c = ret_management;
    *c = (struct server_management){
        .master = master,
        .ready_fd = ready_fd,
        .since_s = os_clock_wall_s(),
        .tickets = { .fd = -1 },
        .progress_due_ns = UINT64_MAX,
        .watchdog_due_ns = UINT64_MAX,
    };
    int rc = server_upgrade_remember(&c->upgrade); /* before the environment changes */
    if (rc < 0)
        log_error(LOG_WARNING, "SIGUSR2 will not be able to replace the binary: %s", strerror(-rc));
    rc = os_notify_open(&c->notify);
    if (rc < 0)
        log_error(LOG_WARNING,
                  "the service manager gets no messages: NOTIFY_SOCKET cannot be used: %s",
                  strerror(-rc));
    if (c->notify.watchdog_ns > 0)
        c->watchdog_due_ns = os_clock_now_ns() + c->notify.watchdog_ns / 2;
    rc = server_inherited_take(&c->inherited);
    if (rc < 0)
        server_management_close(c);
    if (c->inherited.ready_fd >= 0) /* the --ready-fd of the command line was the predecessor's */
        c->ready_fd = c->inherited.ready_fd;
    if (rc == 0 && c->inherited.tickets_fd >= 0)
        adopt_tickets(c);
    return rc;
}

void server_management_listen(struct server_management *management, const char *setting)
{
    char path[SERVER_RUNTIME_MAX] = "";
    int inherited_fd = management->inherited.control_fd;
    management->inherited.control_fd = -1;
    if (strcmp(setting, "off") == 0) {
        if (inherited_fd >= 0)
            close(inherited_fd);
        return;
    }
    int rc = server_control_open(&management->control, setting, inherited_fd, commands, management,
                                 path);
    /* The path is that of the folder if the folder was refused. */
    bool distrusted = rc == -EPERM && server_runtime_check(path) == -EPERM;
    if (rc < 0)
        log_error(
            LOG_WARNING,
            "cannot open the control socket %s: %s; `weir reload` and `weir stop` do not work "
            "(choose another path with --control PATH, or --control off)",
            path, distrusted ? SERVER_RUNTIME_DISTRUSTED : os_socket_reason(rc));
}

/* ---- the loop ---- */

size_t server_management_poll(const struct server_management *management, struct pollfd *ends)
{
    size_t count = server_control_poll(management->control, ends);
    if (management->upgrade.ready_fd >= 0)
        ends[count++] = (struct pollfd){ management->upgrade.ready_fd, POLLIN, 0 };
    return count;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t server_management_due_ns(const struct server_management *management)
{
    uint64_t due = server_control_due_ns(management->control);
    due = sooner(due, management->watchdog_due_ns);
    due = sooner(due, management->progress_due_ns);
    if (management->tickets.memory)
        due = sooner(due, tls_tickets_due_ns(&management->tickets));
    return management->upgrade.ready_fd >= 0 ? sooner(due, management->upgrade.limit_ns) : due;
}

void server_management_serve(struct server_management *management, const struct pollfd *ends,
                             size_t count, unsigned workers)
{
    uint64_t now = os_clock_now_ns();
    server_control_serve(management->control, ends, count, now);
    if (now >= management->watchdog_due_ns) {
        (void)os_notify_send(&management->notify,
                             "WATCHDOG=1"); /* an error is no worse than a lost message */
        management->watchdog_due_ns = now + management->notify.watchdog_ns / 2;
    }
    if (now >= management->progress_due_ns) {
        server_control_report(management->control, "stop", "...waiting for %u worker%s to finish\n",
                              workers, workers == 1 ? "" : "s");
        management->progress_due_ns = now + PROGRESS_NS;
    }
    if (management->tickets.memory)
        (void)tls_tickets_rotate(&management->tickets, now);
}

/* ---- reports ---- */

/* The number may be that of standard output or error. Then lines that are written there must not
 * go to what would get the number next, such as a connection. */
static void close_ready(struct server_management *management)
{
    if (management->ready_fd < 0)
        return;
    const int rc = os_process_close(management->ready_fd);
    management->ready_fd = -1;
    if (rc < 0)
        log_error(LOG_WARNING, "cannot open /dev/null for a closed descriptor: %s", strerror(-rc));
}

static void notify_manager(const struct server_management *management, const char *what,
                           const char *status)
{
    int rc = os_notify_send(&management->notify, "%s\nSTATUS=%s", what, status);
    if (rc < 0)
        log_error(LOG_WARNING, "cannot send %s to the service manager: %s", what, strerror(-rc));
}

void server_management_serving(struct server_management *management,
                               const struct server_listeners *listeners, const char *status)
{
    server_control_keep(management->control);
    notify_manager(management, "READY=1", status);
    if (management->ready_fd < 0)
        return;
    if (server_listeners_print(listeners, management->ready_fd) < 0)
        log_error(LOG_WARNING, "cannot write the addresses to --ready-fd %d: %s",
                  management->ready_fd, strerror(errno));
    close_ready(management);
}

void server_management_reloading(struct server_management *management)
{
    server_control_renew(management->control);
    int rc = os_notify_reloading(&management->notify);
    if (rc < 0)
        log_error(LOG_WARNING, "cannot report the reload to the service manager: %s",
                  strerror(-rc));
}

void server_management_reloaded(struct server_management *management, bool good, const char *report,
                                const char *status)
{
    notify_manager(management, "READY=1", status);
    server_control_report(management->control, "reload", "%s", report);
    server_control_finish(management->control, "reload", good, os_clock_now_ns());
}

void server_management_stopping(struct server_management *management)
{
    if (!management->handed_over)
        notify_manager(management, "STOPPING=1", "stopping: the present connections finish");
}

/* ---- the upgrade of the binary ---- */

static const char *descriptor_name(const struct server_address *address, bool page)
{
    bool any = !os_socket_same(&address->asked, &address->got);
    if (page)
        return any ? SERVER_INHERITED_PAGE_ANY : SERVER_INHERITED_PAGE;
    if (address->managed)
        return SERVER_INHERITED_MANAGER;
    return any ? SERVER_INHERITED_ANY : SERVER_INHERITED_OWN;
}

static size_t count_listening(const struct server_addresses *addresses)
{
    size_t count = 0;
    for (const struct server_address *a = addresses->first; a; a = a->next)
        count += a->listening;
    return count;
}

static size_t add_listening(struct server_upgrade_descriptor *all, size_t count,
                            const struct server_addresses *addresses, bool page)
{
    for (const struct server_address *a = addresses->first; all && a; a = a->next)
        for (size_t i = 0; i < a->listening && !server_address_is_lost(a); i++)
            all[count++] = (struct server_upgrade_descriptor){ a->fd[i], descriptor_name(a, page) };
    return count;
}

/* Every socket that listens and the ticket keys, with their names for the successor. */
static struct server_upgrade_descriptor *list_descriptors(
    const struct server_management *management, const struct server_addresses *addresses,
    const struct server_addresses *page, size_t *ret_count)
{
    size_t count = 2 + count_listening(addresses) + count_listening(page);
    struct server_upgrade_descriptor *all = calloc(count, sizeof(*all));
    count = add_listening(all, 0, addresses, false);
    count = add_listening(all, count, page, true);
    int control_fd = server_control_listener(management->control);
    if (all && control_fd >= 0)
        all[count++] = (struct server_upgrade_descriptor){ control_fd, SERVER_INHERITED_CONTROL };
    if (all && management->tickets.memory)
        all[count++] =
            (struct server_upgrade_descriptor){ management->tickets.fd, SERVER_INHERITED_TICKETS };
    *ret_count = count;
    return all;
}

void server_management_upgrade(struct server_management *management,
                               const struct server_addresses *addresses,
                               const struct server_addresses *page)
{
    size_t count;
    if (server_management_is_upgrading(management)) {
        log_error(LOG_WARNING, "SIGUSR2 is ignored: process %d is starting already",
                  (int)management->upgrade.pid);
        return;
    }
    struct server_upgrade_descriptor *all = list_descriptors(management, addresses, page, &count);
    const bool beside_stuck = addresses->dead_waiters_until_ns == UINT64_MAX;
    int rc = all ? server_upgrade_begin(&management->upgrade, all, count, beside_stuck) : -ENOMEM;
    free(all);
    if (rc == -EBUSY) {
        log_error(LOG_ERROR,
                  "SIGUSR2 is ignored: process %d was killed and does not end, probably because it "
                  "waits for a disk that hangs",
                  (int)management->upgrade.killed);
        return;
    }
    if (rc < 0) {
        log_error(LOG_ERROR, "SIGUSR2: cannot replace the binary: %s", strerror(-rc));
        return;
    }
    server_control_pause(management->control);
    management->rotates_successor = false;
    log_error(LOG_INFO, "SIGUSR2: started %s as process %d", management->upgrade.file,
              (int)management->upgrade.pid);
}

bool server_management_is_upgrading(const struct server_management *management)
{
    return management->upgrade.ready_fd >= 0;
}

bool server_management_has_successor(struct server_management *management)
{
    switch (server_upgrade_check(&management->upgrade, os_clock_now_ns())) {
    case SERVER_UPGRADE_READY:
        management->handed_over = true;
        management->watchdog_due_ns = UINT64_MAX;
        (void)os_notify_send(&management->notify, "MAINPID=%d", (int)management->upgrade.pid);
        server_control_retire(management->control);
        if (management->rotates_successor)
            (void)kill(management->upgrade.pid, SIGUSR1);
        log_error(LOG_INFO, "process %d serves; this one finishes its connections",
                  (int)management->upgrade.pid);
        return true;
    case SERVER_UPGRADE_FAILED:
        log_error(LOG_ERROR, "the new binary failed to start; the old one continues to serve");
        server_control_continue(management->control);
        return false;
    case SERVER_UPGRADE_NONE:
    case SERVER_UPGRADE_PENDING:
        break;
    }
    return false;
}

bool server_management_note_stop(struct server_management *management)
{
    const bool first = management->handed_over && !management->stop_asked;
    management->stop_asked = true;
    return first;
}

void server_management_rotated(struct server_management *management)
{
    /* A successor that starts may have opened the old files, and cannot take signals yet. */
    management->rotates_successor = server_management_is_upgrading(management);
    const pid_t predecessor = management->inherited.predecessor;
    if (predecessor > 0 && getppid() == predecessor)
        (void)kill(predecessor, SIGUSR1);
}

void server_management_abandon(struct server_management *management)
{
    if (!server_management_is_upgrading(management))
        return;
    server_upgrade_abandon(&management->upgrade);
    server_control_continue(management->control);
}

/* ---- the end ---- */

void server_management_leave(struct server_management *management, bool tls)
{
    if (!tls)
        tls_tickets_close(&management->tickets);
    close_ready(management); /* else its reader would not see the end */
    server_control_leave(management->control);
    management->control = NULL;
    os_notify_close(&management->notify);
    os_file_close(management->inherited.control_fd); /* until the server listens there */
    server_inherited_free(&management->inherited);
    server_upgrade_done(&management->upgrade);
}

void server_management_close(struct server_management *management)
{
    uint64_t now = os_clock_now_ns();
    server_control_finish(management->control, "stop", true, now);
    server_control_finish(management->control, "stop now", true, now);
    server_control_close(management->control);
    management->control = NULL;
    server_management_leave(management, false);
}
