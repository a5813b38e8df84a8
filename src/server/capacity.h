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

/* Descriptors of a worker that may have `files`: for large files in the cache, and for
 * connections. */
unsigned server_capacity_cache_files(size_t files);
unsigned server_capacity_connections(const struct config *config, size_t files);

enum { SERVER_CAPACITY_MAX = 256 };

/* "at most 4064 connections in each of 2 workers, limited by open files (ulimit -n 5120); ...".
 * This process may open as many files as workers may. */
void server_capacity_describe(const struct config *config, const struct model *model,
                              unsigned workers, unsigned threads, char out[SERVER_CAPACITY_MAX]);
