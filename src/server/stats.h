/* SPDX-License-Identifier: MIT
 *
 * The master's part of the statistics. The master makes and removes the segment, and names sites
 * and generations in it. It counts the events that only the master sees. It settles the blocks of
 * workers that have died.
 */
#pragma once

#include "config/config.h"
#include "stats/arena.h"
#include "stats/moments.h"

#include <sys/types.h>

struct config_store;
struct server_addresses;
struct server_generation;
struct server_listeners;

/* Zeroed: nothing is counted. */
struct server_stats {
    struct stats_segment segment;
    struct stats_writer writer;
    struct stats_moments moments;
    bool asked;       /* a segment was requested: it exists, or it cannot be made */
    bool borrowed;    /* the segment still belongs to a predecessor */
    bool measured;    /* `drops` and `overflows` are set */
    unsigned damaged; /* arenas, at the last moment */
    uint64_t beat_due_ns;
    uint64_t drops;     /* of the present listeners, counted already */
    uint64_t overflows; /* of all listeners of the machine, counted already */
};

/* Prepares the segment for a configuration, before its first worker: makes it for the first
 * configuration that wants one, and adds the names of the sites. A failure is a warning in the
 * error log. A master that replaces `predecessor` (0: none) keeps the predecessor's counts. */
void server_stats_use(struct server_stats *stats, const struct config *config, pid_t predecessor);

/* Before a worker of a configuration is forked: reserves memory for its counts. Gives the number of
 * the arena; STATS_ARENA_NONE when its statistics are off, or there is no memory. */
unsigned server_stats_reserve(struct server_stats *stats, const struct config *config);

/* After the fork: `pid` is its result. */
void server_stats_forked(const struct server_stats *stats, unsigned arena, pid_t pid);

/* A process has ended with `status` of wait(2). It need not be a worker: the first process of a
 * container gets those that lost their parent. */
void server_stats_reaped(const struct server_stats *stats, pid_t pid, int status);

/* In a new worker, before it changes its user: gives up everything but the right to write `arena`
 * and to read the head. The segment to count in; NULL: the statistics are off, or there is none. */
const struct stats_segment *server_stats_enter(struct server_stats *stats,
                                               const struct config *config, unsigned arena);

/* The whole server begins to stop. */
void server_stats_stopping(const struct server_stats *stats);

/* A hash of all values in force and of where they come from. */
uint64_t server_stats_hash(const struct config_store *store);

/* `g` serves, and `page` are the listeners of the statistics page. */
void server_stats_serving(struct server_stats *stats, const struct server_generation *g,
                          const struct server_listeners *page);

/* A successor has died before it served. If the segment was its own already, this process takes it
 * back, and describes `g` in it again (NULL: nothing serves). */
void server_stats_take_back(struct server_stats *stats, const struct server_generation *g,
                            const struct server_listeners *page, bool stopping);

/* A reload has failed for the reason `error`, or has succeeded (NULL). */
void server_stats_reloaded(const struct server_stats *stats, const char *error);

/* Certificates have changed on the disk, and could be used or not. */
void server_stats_certificates(struct server_stats *stats, bool refused);

/* A list of users has changed on the disk, and could be used or not. */
void server_stats_users(struct server_stats *stats, bool refused);

/* So many folders of sites are gone. */
void server_stats_folders(const struct server_stats *stats, unsigned gone);

/* The logs were opened again; `failed` is the number of failures. */
void server_stats_rotated(const struct server_stats *stats, unsigned failed);

/* Does the work of each second. Returns the time of the next tick, or `due_ns` if that is
 * earlier. */
uint64_t server_stats_tick(struct server_stats *stats, const struct server_addresses *addresses,
                           uint64_t due_ns);

/* The server has stopped. */
void server_stats_end(struct server_stats *stats);
