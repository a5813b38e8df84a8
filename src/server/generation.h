/* SPDX-License-Identifier: MIT
 *
 * A generation is one configuration at work: the worker processes made from it,
 * with what the master keeps for them. A reload starts another one and drains
 * this one; what both have in common are the addresses (server/listeners.h).
 *
 *   STARTING   its workers prepare and then wait for each other; nobody is served
 *   SERVING    workers that die are replaced
 *   DRAINING   workers finish what they have begun, or are made to; it is gone
 *              with the last of them. One that dies is replaced if the master
 *              has passed it connections that it had not taken yet
 *
 * Only the master uses it. What fails is told where the master wants it: until a
 * generation serves, in `why`.
 */
#pragma once

#include "config/config.h"
#include "log/access.h"
#include "log/error.h"
#include "model/model.h"
#include "server/dispatch.h"
#include "server/listeners.h"
#include "server/stats.h"

#include <sys/types.h>

struct config_store;

enum server_generation_state { GENERATION_STARTING, GENERATION_SERVING, GENERATION_DRAINING };

/* The place of one worker. */
struct server_slot {
    pid_t pid;         /* 0: none */
    pid_t predecessor; /* that died; 0: none */
    bool ready;
    uint64_t started_ns;
    uint64_t restart_ns; /* when a dead one is replaced */
    unsigned deaths;     /* in quick succession */
};

struct server_generation {
    struct server_generation *next; /* the master's */
    struct config_store *store;
    const struct config *config;
    const struct model *model;
    char model_why[MODEL_WHY_MAX];
    unsigned workers, threads;
    struct server_slot *slots; /* one for each worker */
    struct server_listeners listeners;
    struct server_dispatch *dispatch; /* where the master accepts; or NULL */
    struct log_access_sink access_log;
    int error_fd; /* the error log, until server_generation_go makes it the process's own; or -1 */
    int ready_pipe[2];             /* from the workers: server/worker.h */
    int go_pipe[2];                /* to the workers, until they serve */
    char line[LOG_ERROR_LINE_MAX]; /* what has come of a worker's line */
    size_t line_len;
    enum server_generation_state state;
    bool failed; /* it cannot serve */
    bool over;   /* no worker is replaced any more */
    char why[LOG_ERROR_LINE_MAX];
    uint64_t limit_ns; /* when workers that are still there are killed; while it starts, when it
                          has failed; 0: never */
};

/* What a new worker process of `g` does with what it inherits of the master and is
 * not its generation's: lets go of it. The process of the statistics page is of none: NULL. */
struct server_generation_host {
    void (*leave)(void *context, const struct server_generation *g);
    void *context;
    struct server_stats *stats; /* where workers count, and are counted */
};

/* Makes a generation of what `store`, which it takes, says: opens its logs and takes
 * its addresses. `failed` says whether it can be used; NULL: there is no memory for it. */
struct server_generation *server_generation_new(struct config_store *store,
                                                struct server_addresses *addresses);

/* It cannot be used, for the reason in `text`, unless there is one already. */
void server_generation_fail(struct server_generation *g, const char *text);

/* Starts its workers. With a `limit_ns` (monotonic) they have to be ready by then. */
void server_generation_start(struct server_generation *g, struct server_addresses *addresses,
                             const struct server_generation_host *host, uint64_t limit_ns);

/* Whether every worker is ready. */
bool server_generation_is_ready(const struct server_generation *g);

/* Lets connections in and the workers serve, and logs errors where its configuration
 * says. 0 or -errno; then it has failed. */
MUST_USE int server_generation_go(struct server_generation *g);

/* Makes its error log the process's own, if it could be opened and is not. */
void server_generation_use_error_log(struct server_generation *g);

/* Has the workers finish what they have begun, within the limits of the configuration,
 * and gives up what they have no more need of. A generation that never served ends. */
void server_generation_drain(struct server_generation *g, struct server_addresses *addresses);

/* The same, but what has begun is cut off. */
void server_generation_end(struct server_generation *g, struct server_addresses *addresses);

/* Passes a signal on to every worker. */
void server_generation_signal(const struct server_generation *g, int signal);

/* Reads what the workers tell; when ready_pipe[0] has something. */
void server_generation_read(struct server_generation *g);

/* A process has ended. Returns whether it was one of these workers. */
bool server_generation_reap(struct server_generation *g, pid_t pid, int status);

/* Does what is due: replaces dead workers, kills what should have ended. */
void server_generation_tick(struct server_generation *g, struct server_addresses *addresses,
                            const struct server_generation_host *host);

/* When that is the case next; UINT64_MAX: never. */
uint64_t server_generation_due_ns(const struct server_generation *g);

/* Whether no worker is left, and none is to come for connections that wait. */
bool server_generation_is_gone(const struct server_generation *g);

/* In a worker of another generation: closes what is this one's, but for the listeners. */
void server_generation_leave(struct server_generation *g);

/* Frees what is left. */
void server_generation_free(struct server_generation *g, struct server_addresses *addresses);
