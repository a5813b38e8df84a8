/* SPDX-License-Identifier: MIT
 *
 * A worker process: after the fork it opens its resources and serves with the model.
 */
#pragma once

#include "config/config.h"
#include "log/access.h"
#include "model/model.h"
#include "server/auth.h"
#include "server/limits.h"
#include "server/tls.h"

#include <sys/types.h>

struct server_worker_plan {
    const struct config *config;
    const struct model *model;
    unsigned threads;
    unsigned index; /* among the workers */
    pid_t master;
    int *listeners;           /* as in struct server; the worker closes them */
    const bool *listener_tls; /* likewise, and borrowed */
    unsigned listener_count, listener_sets;
    uint64_t dead_waiters_until_ns;     /* as in struct server */
    struct ipc_fdpass_receiver intake;  /* its fd -1: the worker accepts itself */
    struct log_access_sink *access_log; /* opened by the master */
    int logs_fd;                        /* as in struct server; the worker closes it */
    const struct stats_segment *stats;  /* NULL: nothing is counted */
    struct server_limits *limits;
    const struct server_tls *tls;
    const struct server_auth *auth;
    uint16_t https_port; /* for redirects; 0: none */
    int ready_fd;        /* gets SERVER_WORKER_READY or _FAILED */
    int go_fd; /* a ready worker waits here for a byte; the end of the pipe means: do not serve;
                  -1: no wait */
};

/* The messages of a worker to the master: lines, each a letter and a text, in one write. Until a
 * worker with a go_fd serves, it sends its errors this way and does not log them. */
#define SERVER_WORKER_READY  'R' /* the index, a space, and struct server_sandbox's in_force */
#define SERVER_WORKER_LACKS  'L' /* its `missing` */
#define SERVER_WORKER_FAILED 'F' /* and the reason */

/* Serves until a signal stops it; returns the exit status of the process. */
int server_worker_run(const struct server_worker_plan *plan);
