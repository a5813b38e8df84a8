/* SPDX-License-Identifier: MIT
 *
 * A generation is one configuration with its worker processes, and the master's records of them. A
 * reload starts another generation and drains the earlier one. Both share the addresses
 * (server/listeners.h).
 *
 *   STARTING   the workers prepare and wait for each other; none serves yet
 *   SERVING    a worker that dies is replaced
 *   DRAINING   the workers finish the answers under way, or are killed at the limit. The
 *              generation ends with its last worker. A worker that dies is replaced only if
 *              connections wait in its channel. A worker that SIGKILL does not end is given up
 *
 * Only the master uses it. Until a generation serves, the reason for a failure is in `why`;
 * afterwards it goes to the error log.
 */
#pragma once

#include "config/config.h"
#include "log/error.h"
#include "model/model.h"
#include "server/auth.h"
#include "server/dispatch.h"
#include "server/limits.h"
#include "server/listeners.h"
#include "server/logs.h"
#include "server/roots.h"
#include "server/sandbox.h"
#include "server/sitefiles.h"
#include "server/slot.h"
#include "server/stats.h"
#include "server/tls.h"

#include <sys/types.h>

struct config_store;

enum server_generation_state { GENERATION_STARTING, GENERATION_SERVING, GENERATION_DRAINING };

struct server_generation {
    struct server_generation *next; /* the master's */
    struct config_store *store;
    const struct config *config; /* with the rules of `sitefiles` */
    const struct model *model;
    char model_why[MODEL_WHY_MAX];
    struct server_roots roots; /* the folders that the workers open */
    struct server_tls tls;
    struct server_auth auth;
    struct server_sitefiles sitefiles;
    struct server_sandbox sandbox; /* of the workers, as they have reported it */
    unsigned workers, threads;
    unsigned worker_sets, sets; /* of sockets: for each worker, and in all (at least 1) */
    struct server_slot *slots;  /* one for each worker */
    struct server_listeners listeners;
    bool *listener_tls;               /* which columns of their layout are for TLS */
    struct server_dispatch *dispatch; /* where the master accepts; or NULL */
    struct server_logs logs;
    struct server_limits limits;
    int ready_pipe[2];             /* from the workers: server/worker.h */
    int go_pipe[2];                /* to the workers, until they serve */
    char line[LOG_ERROR_LINE_MAX]; /* the part of a worker's line that has been read */
    size_t line_len;
    enum server_generation_state state;
    bool failed; /* it cannot serve */
    bool over;   /* no worker is replaced from now on */
    char why[LOG_ERROR_LINE_MAX];
    uint64_t check_ns;  /* while SERVING: when its workers are looked at */
    uint64_t killed_ns; /* when its workers were killed; 0: they were not */
    uint64_t limit_ns;  /* when the remaining workers are killed; while STARTING, when it counts as
                          failed; 0: never */
};

/* The master, as its generations see it. A new worker process of `g` calls `leave`, which closes
 * everything of the master that does not belong to `g`. The process of the statistics page belongs
 * to no generation: NULL. */
struct server_generation_host {
    void (*leave)(void *context, const struct server_generation *g);
    void *context;
    struct server_stats *stats; /* the statistics that workers count in */
    bool *abandoned;            /* set when a worker could not be killed */
};

/* Makes a generation of the configuration in `store`, which it takes: reads the certificates, and
 * opens the logs and the addresses. Borrows `tickets` for its life. Check `failed` before use.
 * NULL: no memory. */
struct server_generation *server_generation_new(struct config_store *store,
                                                struct server_addresses *addresses,
                                                struct tls_tickets *tickets);

/* Marks it as failed, with `text` as the reason unless it has one already. */
void server_generation_fail(struct server_generation *g, const char *text);

/* The same with "cannot <what>: <the error>". Returns `rc`, which is -errno. */
int server_generation_cannot(struct server_generation *g, const char *what, int rc);

/* Starts its workers. They must be ready at `limit_ns` (monotonic; 0: no limit). */
void server_generation_start(struct server_generation *g, struct server_addresses *addresses,
                             const struct server_generation_host *host, uint64_t limit_ns);

/* Starts to listen, has the workers serve, and switches to the error log of its configuration. 0,
 * or -errno, and then it has failed. */
MUST_USE int server_generation_go(struct server_generation *g);

/* Has the workers finish the answers under way, within the limits of the configuration, and stops
 * the use of its addresses. The workers of a generation that never served just end. */
void server_generation_drain(struct server_generation *g, struct server_addresses *addresses);

/* The same, but answers under way are cut off. */
void server_generation_end(struct server_generation *g, struct server_addresses *addresses);

/* Does what is due: replaces dead workers, kills workers that are past their limit. */
void server_generation_tick(struct server_generation *g, struct server_addresses *addresses,
                            const struct server_generation_host *host);

/* When the next tick is due; UINT64_MAX: never. */
uint64_t server_generation_due_ns(const struct server_generation *g);

/* In a worker of another generation: closes everything of this one except the listeners. */
void server_generation_leave(struct server_generation *g);

/* Kills workers that are left, closes everything, and frees it. */
void server_generation_free(struct server_generation *g, struct server_addresses *addresses);
