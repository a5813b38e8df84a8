/* SPDX-License-Identifier: MIT */
#include "server/trial.h"

#include "base/duration.h"
#include "config/read.h"
#include "server/auth.h"
#include "server/master.h"
#include "server/roots.h"
#include "server/sitefiles.h"
#include "server/tls.h"

#include <stdio.h>
#include <string.h>

struct reading {
    const struct server_master_launch *launch;
    struct config_store *store;
    struct tls_tickets *tickets;
};

/* The same files as those of a generation. */
static int read_files(const struct config *config, struct tls_tickets *tickets)
{
    char why[TLS_WHY_MAX + AUTH_WHY_MAX];
    struct server_tls tls;
    struct server_auth auth;
    struct server_sitefiles sitefiles;
    struct server_roots roots;
    int rc = server_tls_open(&tls, config, tickets, why);
    rc = rc < 0 ? rc : server_auth_open(&auth, config, why);
    rc = rc < 0 ? rc : server_sitefiles_open(&sitefiles, &config, why);
    return rc < 0 ? rc : server_roots_note(&roots, config);
}

static void read_all(void *context, int fd)
{
    const struct reading *reading = context;
    struct config_store *store = reading->store;
    (void)fd;
    if (!store)
        store = reading->launch->read(reading->launch->context);
    if (config_read_errors(store) == 0)
        (void)read_files(config_read_result(store), reading->tickets);
}

static bool reads(const struct server_trial *trial)
{
    return trial->errand.pid > 0;
}

void server_trial_begin(struct server_trial *trial, const struct server_master_launch *launch,
                        struct config_store *store, struct tls_tickets *tickets, uint64_t now_ns)
{
    struct reading reading = { launch, store, tickets };
    CHECK(!server_trial_is_awaited(trial));
    trial->limit_ns = now_ns;
    if (reads(trial))
        return;
    trial->limit_ns = now_ns + SERVER_TRIAL_S * DURATION_SECOND;
    if (server_errand_begin(&trial->errand, read_all, &reading) == 0) /* else it passes */
        server_errand_close(&trial->errand);
}

bool server_trial_is_awaited(const struct server_trial *trial)
{
    return trial->limit_ns > 0;
}

bool server_trial_is_open(const struct server_trial *trial)
{
    return server_errand_has_process(&trial->errand) || server_trial_is_awaited(trial);
}

enum server_trial_result server_trial_result(struct server_trial *trial, uint64_t now_ns,
                                             char why[SERVER_TRIAL_WHY_MAX])
{
    if (!server_trial_is_awaited(trial))
        return TRIAL_NO_RESULT;
    if (reads(trial) && now_ns < trial->limit_ns)
        return TRIAL_NO_RESULT;
    const int signal = trial->errand.signal;
    enum server_trial_result result = TRIAL_FAILED;
    if (reads(trial))
        (void)snprintf(why, SERVER_TRIAL_WHY_MAX,
                       "a disk that the configuration names does not answer");
    else if (signal > 0)
        (void)snprintf(why, SERVER_TRIAL_WHY_MAX,
                       "a process that read the configuration first was killed by signal %d (%s), "
                       "perhaps because it needs more memory than there is",
                       signal, strsignal(signal));
    else
        result = TRIAL_PASSED;
    server_trial_abandon(trial);
    return result;
}

uint64_t server_trial_due_ns(const struct server_trial *trial, uint64_t due_ns)
{
    if (!server_trial_is_awaited(trial))
        return due_ns;
    const uint64_t its = reads(trial) ? trial->limit_ns : 0;
    return its < due_ns ? its : due_ns;
}

void server_trial_abandon(struct server_trial *trial)
{
    trial->limit_ns = 0;
    server_errand_give_up(&trial->errand);
}
