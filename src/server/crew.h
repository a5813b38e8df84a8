/* SPDX-License-Identifier: MIT
 *
 * The worker processes of one generation: the master starts, signals and replaces them, and reads
 * their messages. The generation decides when they serve, drain and end.
 */
#pragma once

#include "server/generation.h"

/* Starts all of them, or marks the generation as failed. */
void server_crew_start(struct server_generation *g, struct server_addresses *addresses,
                       const struct server_generation_host *host);

/* Starts those that are missing and due. */
void server_crew_replace(struct server_generation *g, struct server_addresses *addresses,
                         const struct server_generation_host *host, uint64_t now_ns);

/* When one is due to be started or looked at; UINT64_MAX: never. */
uint64_t server_crew_due_ns(const struct server_generation *g);

/* Whether every worker is ready. */
bool server_crew_is_ready(const struct server_generation *g);

/* Whether no worker is left, and none will be started for connections that wait. */
bool server_crew_is_gone(const struct server_generation *g);

void server_crew_signal(const struct server_generation *g, int signal);

/* Reads their messages. Call it when ready_pipe[0] is readable. */
void server_crew_read(struct server_generation *g);

/* Opens the logs again, and passes them to the workers. */
void server_crew_rotate_logs(struct server_generation *g, struct server_logs_rotation *rotation);

/* A process has ended. Returns whether it was one of these workers. */
bool server_crew_reap(struct server_generation *g, pid_t pid, int status);

/* Once a second: gives up workers that have died and do not end, because a thread of them waits
 * for a disk. Others replace them. True: there was one. */
bool server_crew_forget_lost(struct server_generation *g, uint64_t now_ns);

/* Kills the workers that are left, and gives up those that do not end. */
void server_crew_kill(struct server_generation *g, struct server_addresses *addresses,
                      const struct server_generation_host *host, uint64_t now_ns);

/* Closes the mailboxes for their logs. */
void server_crew_close_mailboxes(struct server_generation *g);
