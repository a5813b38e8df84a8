/* SPDX-License-Identifier: MIT
 *
 * Descriptors that were open when the program started, by the protocol of sd_listen_fds(3): the
 * variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. A service manager hands over listening
 * sockets this way (socket activation), and so does a master to its successor (server/upgrade.h).
 * The names tell the descriptors apart.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Names of descriptors from a predecessor, one of which is a pipe with the name `ready` or `stuck`.
 * Without that pipe all descriptors are a service manager's, whatever their names are. */
#define SERVER_INHERITED_OWN      "own"      /* a listener that weir itself opened */
#define SERVER_INHERITED_ANY      "any"      /* the same, for an address with port 0 */
#define SERVER_INHERITED_PAGE     "page"     /* a listener of the statistics page */
#define SERVER_INHERITED_PAGE_ANY "page-any" /* the same, for an address with port 0 */
#define SERVER_INHERITED_READY    "ready"    /* in place of --ready-fd */
#define SERVER_INHERITED_STUCK    "stuck"    /* likewise; a worker that was given up still exists */
#define SERVER_INHERITED_CONTROL  "control"  /* the control socket, where its path is fixed */
#define SERVER_INHERITED_TICKETS  "tickets"  /* the keys of TLS session tickets (tls/tickets.h) */
#define SERVER_INHERITED_MANAGER  "manager"  /* a listener that a predecessor got from a manager */

struct server_inherited_socket {
    int fd;
    struct os_socket_address address;
    bool managed;  /* a service manager opened it, and keeps it */
    bool any_port; /* the address had port 0 */
    bool page;     /* it belongs to the statistics page */
};

struct server_inherited {
    struct server_inherited_socket *sockets; /* listeners; server_listeners_adopt takes them */
    size_t count;
    int ready_fd;      /* -1: none */
    int control_fd;    /* -1: none */
    int tickets_fd;    /* -1: none */
    bool beside_stuck; /* SERVER_INHERITED_STUCK was there */
    pid_t predecessor; /* the master that started this one; 0: none, or it has ended */
};

/* Whether the environment says that a weir master started this process as its successor. Call it
 * before server_inherited_take. */
bool server_inherited_is_upgrade(void);

/* Takes the descriptors that the environment names for this process, and removes the variables.
 * Every descriptor becomes CLOEXEC. A descriptor that is no listening stream socket is an error,
 * reported in the error log. 0 (also without any descriptor) or -errno, and then there is nothing
 * to free. Call it before other threads start. */
MUST_USE int server_inherited_take(struct server_inherited *ret_inherited);

/* Frees the list; closes nothing. */
void server_inherited_free(struct server_inherited *inherited);
