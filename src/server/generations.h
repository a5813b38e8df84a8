/* SPDX-License-Identifier: MIT
 *
 * All generations of a master, a list with the newest first: what the master's loop does for each
 * of them, in whatever state it is. And generations in words, for messages.
 */
#pragma once

#include "server/generation.h"

#include <poll.h>

enum {
    SERVER_GENERATIONS_MAX = 32, /* at once */
    SERVER_GENERATIONS_POLL = 2 * SERVER_GENERATIONS_MAX
};

unsigned server_generations_count(const struct server_generation *first);

/* Fills at most SERVER_GENERATIONS_POLL elements for poll; returns how many. */
size_t server_generations_poll(const struct server_generation *first, struct pollfd *ends);

/* Handles `fd`, which is readable, if it belongs to a generation. */
void server_generations_act(struct server_generation *first, int fd);

/* Does what is due for each generation. The second function says when the next tick is due
 * (UINT64_MAX: never). */
void server_generations_tick(struct server_generation *first, struct server_addresses *addresses,
                             const struct server_generation_host *host);
uint64_t server_generations_due_ns(const struct server_generation *first);

/* A process has ended, perhaps a worker. The sockets that it shared are mended, so that what it did
 * to them ends with it. */
void server_generations_reap(struct server_generation *first, struct server_addresses *addresses,
                             pid_t pid, int status);

/* Frees the generations whose last worker is gone. If `*serving` is one of them, it becomes
 * NULL. */
void server_generations_remove_gone(struct server_generation **first,
                                    struct server_generation **serving,
                                    struct server_addresses *addresses);

/* How many worker processes all generations have. */
unsigned server_generations_count_workers(const struct server_generation *first);

struct server_page;

/* Opens all logs again, for the master, all workers and the statistics page. Returns the number of
 * failures, which are reported. `first` must not be NULL. */
unsigned server_generations_rotate_logs(struct server_generation *first,
                                        const struct server_page *page);

/* ---- in words ---- */

enum { SERVER_SUMMARY_MAX = MODEL_WHY_MAX + 160 };

/* "model epoll, 1 worker x 1 thread", and why this model where the configuration names another.
 * NULL: an empty text. */
void server_generations_describe(const struct server_generation *g, char out[SERVER_SUMMARY_MAX]);

/* Writes the URLs that clients can use, one a line, as many as fit. */
void server_generations_write_urls(const struct server_listeners *listeners, char *out,
                                   size_t room);

/* Prints on standard error the addresses of `g` and of its statistics page, its model and its
 * capacity. */
void server_generations_print(const struct server_generation *g,
                              const struct server_listeners *page);

/* Logs that `g` serves after a reload. NULL: the reload failed for the reasons in `report`, whose
 * lines are joined. Its warnings are left out. */
void server_generations_log_reload(const struct server_generation *g, char *report);
