/* SPDX-License-Identifier: MIT
 *
 * Before the master reads a configuration again, a process reads it, with the certificates, lists
 * of users and rules that it names (server/errand.h). If a disk does not answer there, or if that
 * process dies, as without memory, the master does not begin: the configuration in use stays.
 */
#pragma once

#include "server/errand.h"

#include <stdint.h>

struct config_store;
struct server_master_launch;
struct tls_tickets;

/* The patience. */
enum { SERVER_TRIAL_S = 20 };

enum { SERVER_TRIAL_WHY_MAX = 160 };

/* Zeroed but for `errand`: no trial. */
struct server_trial {
    struct server_errand errand; /* under way after a failed trial: too many processes wait */
    uint64_t limit_ns;           /* of the trial that the master waits for; 0: of none */
};
#define SERVER_TRIAL_NONE ((struct server_trial){ SERVER_ERRAND_NONE, 0 })

/* Begins to read all that a configuration names: that of `store`, or NULL for the one that
 * launch->read reads. What is borrowed is used in this call only. */
void server_trial_begin(struct server_trial *trial, const struct server_master_launch *launch,
                        struct config_store *store, struct tls_tickets *tickets, uint64_t now_ns);

/* Whether the master waits for the result. */
bool server_trial_is_awaited(const struct server_trial *trial);

/* Whether the master waits for it, or a process of a trial that has failed has not ended. */
bool server_trial_is_open(const struct server_trial *trial);

enum server_trial_result {
    TRIAL_NO_RESULT, /* there is none now, or no trial */
    TRIAL_PASSED,    /* all could be read, right or wrong; or no process could be started */
    TRIAL_FAILED /* a signal has ended the process, or not all was read in SERVER_TRIAL_S, or too
                    many earlier processes wait */
};

/* The result, once. With TRIAL_FAILED `why` gets the reason. */
MUST_USE enum server_trial_result server_trial_result(struct server_trial *trial, uint64_t now_ns,
                                                      char why[SERVER_TRIAL_WHY_MAX]);

/* When server_trial_result may have a result without the end of a child, or `due_ns` if that is
 * earlier. */
uint64_t server_trial_due_ns(const struct server_trial *trial, uint64_t due_ns);

/* The master no longer waits for the result. The process is killed. */
void server_trial_abandon(struct server_trial *trial);
