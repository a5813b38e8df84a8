/* SPDX-License-Identifier: MIT
 *
 * A worker process: what it serves with, made after the fork, and the run of the
 * model in it.
 */
#pragma once

#include "config/config.h"
#include "log/access.h"
#include "model/model.h"
#include "server/listeners.h"

struct server_worker_plan {
    const struct config *config;
    const struct model *model;
    unsigned threads;                   /* that accept */
    unsigned index;                     /* among the workers */
    struct server_listeners *listeners; /* this worker's sets are its own to close */
    struct log_access_sink *access_log; /* opened by the master */
    int ready_fd;                       /* gets one byte once the worker is about to accept */
};

/* Serves until told to stop; returns the process's exit status. */
int server_worker_run(const struct server_worker_plan *plan);
