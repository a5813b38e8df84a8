/* SPDX-License-Identifier: MIT
 *
 * The master's part in the statistics page: its addresses, and the process that serves
 * it (page/page.h). A reload that changes the page opens what is new first, and then
 * one process takes the place of the other. A process that ends is replaced, also
 * while the server drains.
 */
#pragma once

#include "config/config.h"
#include "server/generation.h"
#include "server/listeners.h"

#include <sys/types.h>

/* What one configuration makes of the page. */
struct server_page_version {
    struct server_listeners listeners; /* none: there is no page */
    bool by_default;
    char *password, *user; /* or NULL */
};

/* Zeroed, with descriptors of -1: there is no page. */
struct server_page {
    struct server_addresses addresses;
    struct server_page_version now, next;
    bool prepared;   /* there is a next one */
    int alive_fd;    /* its other end is the process's, which ends with it; -1: there is none */
    pid_t pid;       /* 0: there is none */
    pid_t leaving;   /* an earlier one that is to end; 0: none */
    unsigned deaths; /* in quick succession */
    uint64_t started_ns, restart_ns;
};

#define SERVER_PAGE_NONE \
    { \
        .alive_fd = -1 \
    }

/* Opens what a generation's configuration wants, if it is not open already; nothing, where nothing
 * is counted. Its listeners are open. 0, or -errno with why. */
MUST_USE int server_page_prepare(struct server_page *page, const struct server_stats *stats,
                                 const struct server_generation *g, char *why, size_t size);

/* That configuration serves from now on; or it does not. */
void server_page_commit(struct server_page *page);
void server_page_cancel(struct server_page *page);

/* Starts the process if there is to be one and it is due. When that is next, or `due_ns` if it is
 * earlier. */
uint64_t server_page_tick(struct server_page *page, const struct server_generation_host *host,
                          uint64_t due_ns);

/* A process has ended. Returns whether it was the page's. */
bool server_page_reap(struct server_page *page, pid_t pid, int status);

/* The error log is to be reopened. */
void server_page_reopen(const struct server_page *page);

/* A successor has the addresses: the process ends. */
void server_page_hand_over(struct server_page *page);

/* In another process: closes what is the page's. */
void server_page_leave(struct server_page *page);

/* The server has stopped: ends the process and closes everything. */
void server_page_end(struct server_page *page);
