/* SPDX-License-Identifier: MIT
 *
 * The master process. It owns the listeners and supervises worker processes, which serve with the
 * chosen model. The master never reads a byte from the network.
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
