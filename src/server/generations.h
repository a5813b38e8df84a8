/* SPDX-License-Identifier: MIT
 *
 * All generations of a master, in a list with the newest first: what its loop does for every one of
 * them, whichever state they are in.
 */
#pragma once

#include "server/generation.h"

#include <poll.h>

enum {
    SERVER_GENERATIONS_MAX = 32, /* that are there at once */
    SERVER_GENERATIONS_POLL = 2 * SERVER_GENERATIONS_MAX
};

unsigned server_generations_count(const struct server_generation *first);

/* What to wait for: fills at most SERVER_GENERATIONS_POLL elements; how many. */
size_t server_generations_poll(const struct server_generation *first, struct pollfd *ends);

/* Reads from `fd`, which has something, if it is one of those. */
void server_generations_act(struct server_generation *first, int fd);

/* Does for each what is due, and says when that is the case next (UINT64_MAX: never). */
void server_generations_tick(struct server_generation *first, struct server_addresses *addresses,
                             const struct server_generation_host *host);
uint64_t server_generations_due_ns(const struct server_generation *first);

/* A process has ended that may be a worker. */
void server_generations_reap(struct server_generation *first, pid_t pid, int status);

/* Frees those whose last worker is gone. If `*serving` is among them, it becomes NULL. */
void server_generations_bury(struct server_generation **first, struct server_generation **serving,
                             struct server_addresses *addresses);

/* How many worker processes all generations have. */
unsigned server_generations_count_workers(const struct server_generation *first);

/* Opens the error log and every access log again, in the master and in all workers. */
void server_generations_reopen_logs(struct server_generation *first);

/* ---- in words ---- */

enum { SERVER_SUMMARY_MAX = MODEL_WHY_MAX + 160 };

/* "model epoll, 1 worker x 1 thread", and why this model where the configuration names another.
 * NULL: an empty text. */
void server_generations_describe(const struct server_generation *g, char out[SERVER_SUMMARY_MAX]);

/* Prints on standard error the addresses of `g` and of its statistics page, its model and its
 * capacity. */
void server_generations_print(const struct server_generation *g,
                              const struct server_listeners *page);

/* Logs that `g` serves after a reload. NULL: the reload failed for the reasons in `report`, whose
 * lines are joined. */
void server_generations_log_reload(const struct server_generation *g, char *report);
