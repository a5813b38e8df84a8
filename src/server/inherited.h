/* SPDX-License-Identifier: MIT
 *
 * Descriptors that were open when the program began: the protocol of
 * sd_listen_fds(3), LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. A service manager
 * passes listening sockets that way, and so does a master to the one that takes
 * its place (server/upgrade.h); names tell which is which.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"

#include <stdbool.h>
#include <stddef.h>

/* Names of descriptors from a predecessor. Any other name is a manager's. */
#define SERVER_INHERITED_OWN      "own"      /* a listener that weir itself opened */
#define SERVER_INHERITED_ANY      "any"      /* the same, for an address with port 0 */
#define SERVER_INHERITED_PAGE     "page"     /* a listener of the statistics page */
#define SERVER_INHERITED_PAGE_ANY "page-any" /* the same, for an address with port 0 */
#define SERVER_INHERITED_READY    "ready"    /* in place of --ready-fd */
#define SERVER_INHERITED_CONTROL  "control"  /* the control socket, where its path is fixed */
#define SERVER_INHERITED_MANAGER  "manager"  /* a listener that a predecessor got from a manager */

struct server_inherited_socket {
    int fd;
    struct os_socket_address address;
    bool managed;  /* a service manager opened it, and keeps it */
    bool any_port; /* port 0 was asked for */
    bool page;     /* it is the statistics page's */
};

struct server_inherited {
    struct server_inherited_socket *sockets; /* listeners; whoever serves them closes them */
    size_t count;
    int ready_fd;   /* -1: none */
    int control_fd; /* -1: none */
};

/* Whether the environment says that another weir started this process to take its place. Before
 * server_inherited_take. */
bool server_inherited_is_upgrade(void);

/* Takes what the environment says is for this process, and removes the variables.
 * Every descriptor is CLOEXEC then. What is no listening stream socket is an error, told in
 * the error log. 0 (also when there is nothing) or -errno, and then there is nothing to free.
 * Before other threads. */
MUST_USE int server_inherited_take(struct server_inherited *ret_inherited);

/* Frees the list; closes nothing. */
void server_inherited_free(struct server_inherited *inherited);
