/* SPDX-License-Identifier: MIT
 *
 * The server as a whole: a master process that owns the listeners and
 * supervises worker processes, which serve with the chosen model. The master
 * never reads a byte from the network.
 */
#pragma once

#include "config/config.h"

struct server_launch {
    int ready_fd; /* gets a line per listener, its URL, once it accepts; -1: none */
    bool quiet;   /* print nothing at start */
};

/* Serves `config` until told to stop (SIGTERM or SIGINT: drain; again: now).
 * Returns the process's exit status: 0 after a clean stop, 1 otherwise. Errors
 * are told in the error log. */
int server_run(const struct config *config, const struct server_launch *launch);
