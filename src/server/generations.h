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
