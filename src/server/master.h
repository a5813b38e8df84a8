/* SPDX-License-Identifier: MIT
 *
 * The master process. It owns the listeners and supervises worker processes, which serve with the
 * chosen model. The master never reads a byte from the network.
 *
 * Theory of operation. The master opens the addresses, the logs and the pid file. It forks the
 * workers. Then it waits for signals, for messages of workers and for the deaths of workers. It
 * never reads from the network.
 *
 * The master supervises generations (server/generation.h). Each is made from one reading of the
 * configuration. One generation serves. Another may be starting; it replaces the first when all its
 * workers are ready. Earlier generations drain. An address that stays in the configuration keeps
 * its sockets. Connections therefore wait in the backlog, and none is refused, while a worker or a
 * generation is replaced.
 *
 *   SIGTERM, SIGINT   the workers drain; the second signal ends them at once
 *   SIGQUIT           the workers end at once
 *   SIGUSR1           the logs are opened again, for all processes (server/logs.h)
 *   SIGUSR2           the binary is replaced (server/upgrade.h)
 *   SIGHUP            the configuration is read again (begin_reload). If standard error is a
 *                     terminal, the terminal has closed: as SIGTERM
 *
 * A reload that fails changes nothing. A reload that is requested during another follows it. A stop
 * cancels both.
 *
 * After a stop request the serving generation accepts connections for drain-delay more. Meanwhile
 * /healthz says 503, so that load balancers send no more connections when the addresses close.
 *
 * A site folder that is replaced is served within a second, and a certificate that is replaced is
 * used within some seconds, by a generation with the same configuration (server/follow.h).
 *
 * Workers get SIGTERM (drain) or SIGQUIT (end at once). A second SIGTERM changes nothing: a process
 * manager may signal every process of the service.
 */
#pragma once

#include "config/config.h"

struct config_store;

struct server_master_launch {
    int ready_fd; /* gets the URL of each listener, one a line, once it accepts; -1: none */
    bool quiet;   /* print nothing at start */
    /* Reads the configuration again, in the same way as at start. Gives a store. */
    struct config_store *(*read)(void *context);
    void *context;
};

/* Serves the configuration of `store`, which has no errors and is taken, until a signal or a
 * request stops the server. SIGTERM or SIGINT drains; a second one stops at once. Returns the exit
 * status: 0 after a clean stop, else 1. Errors go to the error log. */
int server_master_run(struct config_store *store, const struct server_master_launch *launch);
