/* SPDX-License-Identifier: MIT */
#include "server/master.h"

#include "base/duration.h"
#include "config/read.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/signal.h"
#include "server/crew.h"
#include "server/exclusives.h"
#include "server/follow.h"
#include "server/generations.h"
#include "server/management.h"
#include "server/report.h"
#include "server/trial.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RELOAD_MAX_S = 60 }; /* until the workers of a reload must be ready */

struct master {
    const struct server_master_launch *launch;
    struct server_addresses addresses;
    struct server_generation *generations;        /* the newest first */
    struct server_generation *starting, *serving; /* two of them; or NULL */
    struct server_generation_host host;
    struct server_exclusives own;
    struct server_management management;
    struct server_look look;
    struct server_trial trial; /* before a generation */
    int signal_fd;
    bool has_terminal;
    bool announced;                   /* a generation has served, and the readiness was reported */
    bool stopping, failed, abandoned; /* abandoned: since the stop began, a worker did not end */
    bool reload_asked, upgrade_asked; /* they begin when the server is settled */
    enum server_follow following;     /* why a generation with the present configuration follows */
    uint64_t drain_ns;           /* the end of drain-delay after a stop request; 0: no delay runs */
    struct server_report report; /* of the reload under way */
};

/* In a new worker process, or in the process of the statistics page. */
static void leave_master(void *context, const struct server_generation *g)
{
    struct master *m = context;
    close(m->signal_fd);
    server_errand_close(&m->look.errand);
    server_pidfile_leave(&m->own.pidfiles);
    server_management_leave(&m->management, g && g->tls.server);
    for (struct server_generation *other = m->generations; other; other = other->next)
        if (other != g)
            server_generation_leave(other);
    if (g)
        server_page_leave(&m->own.page);
    else
        server_listeners_leave(&m->addresses, NULL, 0);
}

/* ---- readiness ---- */

static void announce(struct master *m, const struct server_generation *g)
{
    char text[SERVER_SUMMARY_MAX];
    server_generations_describe(g, text);
    m->announced = true;
    server_sandbox_confine_master(g->config);
    server_listeners_close_unused(&m->addresses);
    server_listeners_close_unused(&m->own.page.addresses);
    if (!m->launch->quiet)
        server_generations_print(g, &m->own.page.now.listeners);
    server_management_serving(&m->management, &g->listeners, text);
}

/* ---- reloading ---- */

/* The end of every reload. A client that has requested it during another one waits for the next. */
static void finish_reload(struct master *m, bool good)
{
    server_report_end(&m->report, good, m->serving, m->reload_asked ? NULL : &m->management,
                      &m->own.stats);
}

/* A generation, the first or a later one, has begun to serve. */
static void report_serving(struct master *m)
{
    server_stats_serving(&m->own.stats, m->serving, &m->own.page.now.listeners);
    server_sitefiles_log(&m->serving->sitefiles);
    if (m->following != FOLLOW_NONE)
        server_follow_report(m->following);
    else if (m->announced)
        finish_reload(m, true);
    else
        announce(m, m->serving);
    m->following = FOLLOW_NONE;
}

/* `g` may be NULL. */
static void refuse_generation(struct master *m, const struct server_generation *g, const char *why)
{
    if (m->following != FOLLOW_NONE) {
        server_follow_refuse(m->following, m->serving, g, why, &m->own.stats);
        m->following = FOLLOW_NONE;
    } else if (m->announced) {
        server_report_say(&m->report, why);
        finish_reload(m, false);
    } else {
        log_error_twice("%s", why); /* the operator who starts the server reads no log yet */
        m->failed = m->stopping = true;
    }
}

/* The generation that is starting has failed; `why` has the reason. */
static void abandon_starting(struct master *m)
{
    struct server_generation *g = m->starting;
    server_exclusives_cancel(&m->own);
    m->starting = NULL;
    refuse_generation(m, g, g->why);
    server_generation_end(g, &m->addresses);
}

/* Has the generation serve whose workers are all ready. The earlier one drains. */
static void switch_generation(struct master *m)
{
    struct server_generation *old = m->serving;
    if (server_generation_go(m->starting) < 0) {
        abandon_starting(m);
        return;
    }
    m->serving = m->starting;
    m->starting = NULL;
    server_exclusives_commit(&m->own, m->serving);
    server_look_forget(&m->look); /* a late result would look like a change */
    if (old)
        server_generation_drain(old, &m->addresses);
    report_serving(m);
}

/* Takes `store`. */
static void start_generation(struct master *m, struct config_store *store)
{
    struct server_generation *g =
        server_generation_new(store, &m->addresses, &m->management.tickets);
    if (!g) {
        refuse_generation(m, NULL, "not enough memory for another configuration");
        return;
    }
    g->next = m->generations;
    m->generations = g;
    m->starting = g;
    if (!m->announced)
        server_logs_use_error(&g->logs);
    const pid_t predecessor = m->management.inherited.predecessor;
    server_exclusives_claim(&m->own, g, predecessor, !m->announced && predecessor == 0);
    uint64_t limit_ns = m->announced ? os_clock_now_ns() + RELOAD_MAX_S * DURATION_SECOND : 0;
    if (!g->failed)
        server_generation_start(g, &m->addresses, &m->host, limit_ns);
}

/* Whether changes on the disk are looked for. While a process waits for a disk that the
 * configuration names, no generation could begin. */
static bool follows_disk(const struct master *m)
{
    return m->serving && !m->starting && !m->stopping && !server_trial_is_open(&m->trial) &&
           !server_management_is_upgrading(&m->management) &&
           server_generations_count(m->generations) < SERVER_GENERATIONS_MAX;
}

/* If a folder, a certificate or a list of users was replaced, a generation with the same
 * configuration follows, which reads all of them again. */
static void follow_disk(struct master *m)
{
    const uint64_t now_ns = os_clock_now_ns();
    if (!m->stopping)
        server_look_tick(&m->look, now_ns);
    if (!follows_disk(m))
        return;
    m->following = server_follow_check(m->serving, &m->look, now_ns);
    server_stats_folders(&m->own.stats, m->serving->roots.gone);
    if (m->following != FOLLOW_NONE)
        server_trial_begin(&m->trial, m->launch, m->serving->store, &m->management.tickets, now_ns);
}

/* Whether no generation is starting or being prepared, and the server does not stop. */
static bool is_settled(const struct master *m)
{
    return !m->starting && !m->stopping && !server_trial_is_awaited(&m->trial);
}

static void begin_reload(struct master *m)
{
    m->reload_asked = false;
    server_management_reloading(&m->management);
    server_report_begin(&m->report);
    if (server_generations_count(m->generations) >= SERVER_GENERATIONS_MAX)
        refuse_generation(
            m, NULL, "too many earlier configurations still have connections; try again later");
    else
        server_trial_begin(&m->trial, m->launch, NULL, &m->management.tickets, os_clock_now_ns());
}

/* Uses the present configuration again, or reads the new one for a reload. */
static void use_configuration(struct master *m)
{
    const bool is_reload = m->following == FOLLOW_NONE;
    struct config_store *store = is_reload ? m->launch->read(m->launch->context)
                                           : config_read_share(m->serving->store);
    if (!is_reload || server_report_read(&m->report, store)) {
        start_generation(m, store);
    } else {
        config_read_free(store);
        finish_reload(m, false);
    }
}

static void check_trial(struct master *m)
{
    char why[SERVER_TRIAL_WHY_MAX];
    const enum server_trial_result result = server_trial_result(&m->trial, os_clock_now_ns(), why);
    if (result == TRIAL_PASSED)
        use_configuration(m);
    else if (result == TRIAL_FAILED)
        refuse_generation(m, NULL, why);
}

static void check_starting(struct master *m)
{
    if (m->starting && m->starting->failed)
        abandon_starting(m);
    else if (m->starting && server_crew_is_ready(m->starting))
        switch_generation(m);
}

/* A reload before an upgrade: its client waits for the answer of this process. */
static void act_on_requests(struct master *m)
{
    if (m->reload_asked && is_settled(m) && !server_management_is_upgrading(&m->management))
        begin_reload(m);
    if (m->upgrade_asked && is_settled(m)) {
        m->upgrade_asked = false;
        server_management_upgrade(&m->management, &m->addresses, &m->own.page.addresses);
    }
}

/* ---- stopping ---- */

static void drain_serving(struct master *m)
{
    log_error(LOG_INFO, "stopping: no new connections are accepted, the present ones finish");
    m->drain_ns = 0;
    if (m->serving && m->serving->state != GENERATION_DRAINING)
        server_generation_drain(m->serving, &m->addresses);
}

/* Ends every generation: after a drain, or at once. A second request to drain ends it at once. */
static void begin_stop(struct master *m, bool drain)
{
    drain = drain && (!m->stopping || server_management_note_stop(&m->management));
    const bool delays = drain && m->serving && !m->addresses.handed_over; /* else they stay open */
    const uint64_t delay_ns = delays ? m->serving->config->drain_delay_ns : 0;
    m->drain_ns = delay_ns > 0 ? os_clock_now_ns() + delay_ns : 0;
    if (delay_ns > 0)
        log_error(LOG_INFO,
                  "stopping in %g s (drain-delay); until then connections are accepted as before",
                  (double)delay_ns / DURATION_SECOND);
    m->abandoned = m->stopping && m->abandoned;
    m->stopping = true;
    m->following = FOLLOW_NONE;
    m->starting = NULL;
    server_trial_abandon(&m->trial);
    server_page_cancel(&m->own.page);
    server_stats_stopping(&m->own.stats);
    server_management_abandon(&m->management);
    server_report_stop(&m->report, m->reload_asked, m->serving, &m->management, &m->own.stats);
    m->reload_asked = false;
    server_management_stopping(&m->management);
    for (struct server_generation *g = m->generations; g; g = g->next) {
        if (!drain)
            server_generation_end(g, &m->addresses);
        else if (g != m->serving && g->state != GENERATION_DRAINING)
            server_generation_drain(g, &m->addresses);
    }
    if (drain && delay_ns == 0)
        drain_serving(m);
}

/* A successor serves, on the same sockets. */
static void yield_to_successor(struct master *m)
{
    m->addresses.handed_over = true;
    server_exclusives_hand_over(&m->own);
    if (m->reload_asked) /* it may have read the configuration before that changed */
        (void)kill(m->management.upgrade.pid, SIGHUP);
    m->reload_asked = false;
    begin_stop(m, true);
}

/* ---- requests from the management interface ---- */

static bool asked_to_reload(void *master)
{
    struct master *m = master;
    const bool can = !m->stopping && !server_management_is_upgrading(&m->management);
    m->reload_asked |= can;
    return can;
}

static void asked_to_stop(void *master, bool drain)
{
    struct master *m = master;
    if (!m->stopping || !drain) /* a second `weir stop` also just drains */
        begin_stop(m, drain);
}

static const struct server_listeners *asked_for_listeners(void *master)
{
    const struct master *m = master;
    return m->serving ? &m->serving->listeners : NULL;
}

/* ---- signals ---- */

/* A successor has ended. If it has not served, what is this process's alone is so again. */
static void take_back(struct master *m)
{
    if (!m->management.handed_over)
        server_exclusives_take_back(&m->own, m->serving, m->stopping);
}

static void reap_children(struct master *m)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (server_page_reap(&m->own.page, pid, status) ||
            server_errand_reap(&m->look.errand, pid, status) ||
            server_errand_reap(&m->trial.errand, pid, status))
            continue;
        if (server_upgrade_reaped(&m->management.upgrade, pid)) {
            take_back(m);
            continue;
        }
        server_stats_reaped(&m->own.stats, pid, status);
        server_generations_reap(m->generations, &m->addresses, pid, status);
    }
}

static void rotate_logs(struct master *m)
{
    server_stats_rotated(&m->own.stats,
                         server_generations_rotate_logs(m->generations, &m->own.page));
    server_management_rotated(&m->management);
}

static void handle_signal(struct master *m, int signal)
{
    switch (signal) {
    case SIGTERM:
    case SIGINT:
        begin_stop(m, true);
        return;
    case SIGQUIT:
        begin_stop(m, false);
        return;
    case SIGUSR1:
        rotate_logs(m);
        return;
    case SIGHUP:
        if (m->has_terminal)
            begin_stop(m, true);
        else if (m->stopping)
            log_error(LOG_WARNING, "SIGHUP is ignored: the server is stopping");
        m->reload_asked = !m->stopping;
        return;
    case SIGUSR2:
        if (m->stopping)
            log_error(LOG_WARNING, "SIGUSR2 is ignored: the server is stopping");
        m->upgrade_asked = !m->stopping;
        return;
    }
}

static void read_master_signals(struct master *m)
{
    int signal;
    while ((signal = os_signal_read(m->signal_fd)) > 0)
        handle_signal(m, signal);
    reap_children(m); /* one SIGCHLD may stand for several deaths */
}

/* ---- the loop ---- */

enum { ENDS_MAX = 1 + SERVER_GENERATIONS_POLL + SERVER_MANAGEMENT_POLL };

static size_t collect_descriptors(const struct master *m, struct pollfd *ends,
                                  size_t *ret_management_ends)
{
    ends[0] = (struct pollfd){ .fd = m->signal_fd, .events = POLLIN };
    size_t count = 1 + server_generations_poll(m->generations, ends + 1);
    *ret_management_ends = server_management_poll(&m->management, ends + count);
    return count;
}

static int loop_wait_ms(struct master *m)
{
    uint64_t due = server_management_due_ns(&m->management);
    due = server_stats_tick(&m->own.stats, &m->addresses, due);
    due = server_page_tick(&m->own.page, &m->host, due);
    due = server_pidfile_tick(&m->own.pidfiles, due);
    due = m->drain_ns > 0 && m->drain_ns < due ? m->drain_ns : due;
    due = server_look_due_ns(&m->look, os_clock_now_ns(), due);
    due = server_trial_due_ns(&m->trial, due);
    if (follows_disk(m))
        due = server_follow_due_ns(m->serving, due);
    uint64_t its = server_generations_due_ns(m->generations);
    due = its < due ? its : due;
    return os_clock_wait_ms(due);
}

static void supervise(struct master *m)
{
    while (m->generations) {
        struct pollfd ends[ENDS_MAX];
        server_generations_tick(m->generations, &m->addresses, &m->host);
        check_trial(m);
        check_starting(m);
        act_on_requests(m);
        follow_disk(m);
        if (m->drain_ns > 0 && os_clock_now_ns() >= m->drain_ns)
            drain_serving(m);
        server_generations_remove_gone(&m->generations, &m->serving, &m->addresses);
        if (!m->generations)
            break;
        size_t asking, count = collect_descriptors(m, ends, &asking);
        (void)poll(ends, count + asking, loop_wait_ms(m)); /* interrupted: no element has events */
        if (!m->stopping && server_management_has_successor(&m->management))
            yield_to_successor(m);
        server_management_serve(&m->management, ends + count, asking,
                                server_generations_count_workers(m->generations));
        for (size_t i = 1; i < count; i++)
            if (ends[i].revents)
                server_generations_act(m->generations, ends[i].fd);
        if (ends[0].revents) /* after the last messages of dead workers */
            read_master_signals(m);
    }
}

/* Opens the signal descriptor, and takes the descriptors that the environment names. */
static int open_management(struct master *m, const struct server_management_master *asked)
{
    m->signal_fd = server_management_open_signals();
    if (m->signal_fd < 0)
        return m->signal_fd;
    int rc = server_management_open(&m->management, asked, m->launch->ready_fd);
    return rc < 0 ? rc : server_listeners_adopt(&m->addresses, &m->management.inherited);
}

int server_master_run(struct config_store *store, const struct server_master_launch *launch)
{
    struct master m = { .launch = launch,
                        .has_terminal = isatty(STDERR_FILENO) == 1,
                        .own = SERVER_EXCLUSIVES_NONE,
                        .look = SERVER_LOOK_NONE,
                        .trial = SERVER_TRIAL_NONE };
    const struct server_management_master asked = { .reload = asked_to_reload,
                                                    .stop = asked_to_stop,
                                                    .serving = asked_for_listeners,
                                                    .context = &m };
    m.host = (struct server_generation_host){ leave_master, &m, &m.own.stats, &m.abandoned };
    m.addresses.other = &m.own.page.addresses;
    m.own.page.addresses.other = &m.addresses;
    if (open_management(&m, &asked) < 0) {
        config_read_free(store);
        return 1;
    }
    start_generation(&m, store);
    if (m.starting)
        server_management_listen(&m.management, m.starting->config->control);
    supervise(&m);
    server_upgrade_end(&m.management.upgrade, SERVER_UPGRADE_END_MS);
    take_back(&m); /* a process removes only what is its own */
    server_look_forget(&m.look);
    server_exclusives_end(&m.own);
    server_management_close(&m.management);
    server_listeners_close_all(&m.addresses);
    close(m.signal_fd);
    return m.failed || m.abandoned ? 1 : 0;
}
