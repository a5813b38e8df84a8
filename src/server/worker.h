/* SPDX-License-Identifier: MIT
 *
 * A worker process: what it serves with, made after the fork, and the run of the
 * model in it.
 */
#pragma once

#include "config/config.h"
#include "log/access.h"
#include "model/model.h"

#include <sys/types.h>

struct server_worker_plan {
    const struct config *config;
    const struct model *model;
    unsigned threads;
    unsigned index; /* among the workers */
    pid_t master;
    int *listeners; /* as in struct server; this worker's to close */
    unsigned listener_count, listener_sets;
    struct ipc_fdpass_receiver intake;  /* its fd -1: the worker accepts itself */
    struct log_access_sink *access_log; /* opened by the master */
    const struct stats_segment *stats;  /* NULL: nothing is counted */
    int ready_fd;                       /* gets SERVER_WORKER_READY or _FAILED */
    int go_fd; /* then a byte is awaited here, and its end means not to serve; -1: no wait */
};

/* What a worker tells the master: lines, each a letter and the rest, in one write.
 * As long as it may have to wait, an error is told so and not logged. */
#define SERVER_WORKER_READY  'R' /* and its index */
#define SERVER_WORKER_FAILED 'F' /* and why */

/* Serves until told to stop; returns the process's exit status. */
int server_worker_run(const struct server_worker_plan *plan);
