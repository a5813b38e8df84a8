/* SPDX-License-Identifier: MIT
 *
 * The capacity of a configuration on this machine: how many workers and threads serve, how many
 * connections they can hold, and which limit comes first. Workers use the same numbers.
 */
#pragma once

#include "config/config.h"
#include "model/model.h"

/* How many worker processes `model` has with this configuration, and threads in each. */
void server_capacity_workers(const struct config *config, const struct model *model,
                             unsigned *ret_workers, unsigned *ret_threads);

/* A warning if the configuration has a number of threads that `model` ignores. */
void server_capacity_warn(const struct config *config, const struct model *model);

/* How a worker shares its descriptors. Together with those that it reserves for itself, they are no
 * more than it may have. */
struct server_capacity {
    unsigned connections;
    uint32_t open_files;  /* large files that are open for answers, or in the cache */
    uint32_t cache_files; /* the part of them that the cache may keep open */
};

/* For a worker that may have `files` descriptors. `model` is NULL in a process without one. */
struct server_capacity server_capacity_of(const struct config *config, const struct model *model,
                                          unsigned threads, size_t files);

/* The size of the cache of each worker with `cache-size = auto`, of which the caches of all workers
 * have a share. `model` is NULL for `auto` or an unknown name. */
uint64_t server_capacity_cache(const struct config *config, const struct model *model,
                               uint64_t memory_bytes);

/* The same for this machine or its control groups (config_request.size_cache). It reads /proc and
 * /sys. */
void server_capacity_size_cache(struct config *config);

enum { SERVER_CAPACITY_MAX = 416 };

/* "at most 4064 connections in each of 2 workers, limited by open files (ulimit -n 5120); ...".
 * This process may open as many files as workers may. */
void server_capacity_describe(const struct config *config, const struct model *model,
                              unsigned workers, unsigned threads, char out[SERVER_CAPACITY_MAX]);
