/* SPDX-License-Identifier: MIT
 *
 * The server as a whole: a master process that owns the listeners and
 * supervises worker processes, which serve with the chosen model. The master
 * never reads a byte from the network.
 */
#pragma once

#include "config/config.h"

struct config_store;

struct server_master_launch {
    int ready_fd; /* gets a line per listener, its URL, once it accepts; -1: none */
    bool quiet;   /* print nothing at start */
    /* Reads the configuration anew, as it was read at start; gives a store. */
    struct config_store *(*read)(void *context);
    void *context;
};

/* Serves what `store`, which has no errors and is taken, says, until told to stop (SIGTERM
 * or SIGINT: drain; again: now). Returns the process's exit status: 0 after a clean stop, 1
 * otherwise. Errors are told in the error log. */
int server_master_run(struct config_store *store, const struct server_master_launch *launch);
