/* SPDX-License-Identifier: MIT
 *
 * The master's part of the statistics page: the addresses, and the process that serves them
 * (page/page.h). A reload that changes the page first opens the new addresses; then a new process
 * replaces the old one. A page with TLS gets a new process at each reload, because its certificates
 * may have changed. A process that dies is replaced, also while the server drains.
 */
#pragma once

#include "config/config.h"
#include "server/generation.h"
#include "server/listeners.h"

#include <sys/types.h>

/* The page as one configuration wants it. */
struct server_page_version {
    struct server_listeners listeners; /* none: there is no page */
    struct tls_server *tls;            /* NULL: no address has TLS */
    bool by_default;
    char *password, *user; /* or NULL */
    char *sandbox;         /* the setting */
};

/* Zeroed, with descriptors of -1: there is no page. */
struct server_page {
    struct server_addresses addresses;
    struct server_page_version now, next;
    bool prepared; /* `next` is filled */
    int alive_fd;  /* of a channel to the process, which ends when this one closes; -1: none */
    pid_t pid;     /* 0: there is none */
    struct ipc_mailbox logs; /* of `pid`, for the error log that is opened again */
    pid_t leaving;           /* an earlier process that is ending; 0: none */
    unsigned deaths;         /* in quick succession */
    unsigned arenas;         /* of the segment, whose files the process has */
    uint64_t started_ns, restart_ns;
};

#define SERVER_PAGE_NONE \
    { \
        .alive_fd = -1, .logs = { -1, -1 } \
    }

/* Opens the addresses that the configuration of `g` names and that are not open yet; none if the
 * statistics are off. Takes the page's certificates from `g`, whose listeners are open. 0, or
 * -errno with the reason in `why`. */
MUST_USE int server_page_prepare(struct server_page *page, const struct server_stats *stats,
                                 struct server_generation *g, char *why, size_t size);

/* The prepared configuration serves from now on (commit), or has failed (cancel). */
void server_page_commit(struct server_page *page);
void server_page_cancel(struct server_page *page);

/* Starts the process if one is wanted and due. Returns the time of the next tick, or `due_ns` if
 * that is earlier. */
uint64_t server_page_tick(struct server_page *page, const struct server_generation_host *host,
                          uint64_t due_ns);

/* A process has ended. Returns whether it was the page's. */
bool server_page_reap(struct server_page *page, pid_t pid, int status);

/* A successor serves the addresses: ends the process and leaves the socket files. */
void server_page_hand_over(struct server_page *page);

/* In another child process: closes what belongs to the page, and clears its keys. */
void server_page_leave(struct server_page *page);

/* The server has stopped: ends the process and closes everything. */
void server_page_end(struct server_page *page);
