/* SPDX-License-Identifier: MIT
 *
 * The master's part in the statistics: it makes the segment and removes it, names
 * sites and generations, counts what only it sees, and settles for workers that
 * have died.
 */
#pragma once

#include "config/config.h"
#include "stats/moments.h"
#include "stats/writer.h"

#include <sys/types.h>

struct server_addresses;
struct server_generation;

/* Zeroed: nothing is counted. */
struct server_stats {
    struct stats_segment segment;
    struct stats_writer writer;
    struct stats_moments moments;
    bool asked;    /* for a segment: there is one, or it is known that there cannot be */
    bool borrowed; /* it is still a predecessor's */
    bool measured; /* the last two have been set */
    uint64_t beat_due_ns;
    uint64_t drops;     /* of the present listeners, told already */
    uint64_t overflows; /* of all listeners, likewise */
};

/* Makes what a configuration needs, before its first worker: the segment, if it is the first that
 * wants one, and the names of its sites. Where that cannot be, a warning says so. A master that
 * replaces another (`predecessor`, else 0) goes on with what that one has counted. */
void server_stats_use(struct server_stats *stats, const struct config *config, pid_t predecessor);

/* The segment for the workers of a configuration; NULL: it wants none, or there is none. */
const struct stats_segment *server_stats_of(const struct server_stats *stats,
                                            const struct config *config);

/* A worker was started, unless `pid` is negative; a process has ended, with `status` of wait(2). */
void server_stats_forked(const struct server_stats *stats, pid_t pid);
void server_stats_reaped(const struct server_stats *stats, pid_t pid, int status);

/* The whole server begins to stop. */
void server_stats_stopping(const struct server_stats *stats);

/* `g` serves. A reload has failed, with so much to say (NULL: it has succeeded). */
void server_stats_serving(struct server_stats *stats, const struct server_generation *g);
void server_stats_reloaded(const struct server_stats *stats, const char *error);

/* Does what is due each second. When that is next, or `due_ns` if it is earlier. */
uint64_t server_stats_tick(struct server_stats *stats, const struct server_addresses *addresses,
                           uint64_t due_ns);

/* The server has stopped. */
void server_stats_end(struct server_stats *stats);
