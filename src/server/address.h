/* SPDX-License-Identifier: MIT
 *
 * One address and its group of listening sockets (server/listeners.h says how the master uses
 * them). It knows no generation. Each generation decides whether the address is http or https.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"

#include <stdbool.h>
#include <stddef.h>

enum { SERVER_BACKLOG = 4096 };

enum { SERVER_URL_MAX = 160 };

struct server_address {
    struct server_address *next;
    struct os_socket_address asked, got; /* they differ in the port if the setting has port 0 */
    char url[SERVER_URL_MAX];
    struct os_socket_file file; /* of a Unix socket */
    int *fd;                    /* the group */
    size_t count;               /* sockets of the group */
    size_t listening;           /* how many of the first ones listen */
    size_t served;  /* how many of those a generation has accepted from, or another process */
    unsigned users; /* generations that use it */
    bool tls;       /* the newest generation that uses it has TLS there */
    bool adopted;   /* another process opened the sockets: a service manager or a predecessor */
    bool managed;   /* a service manager opened them; it keeps them and the socket file */
};

/* Reports in the error log that the server cannot listen on `where`, why, and what to do. `label`
 * begins the message (config_read_label); "": no setting names the address; NULL: it is not known.
 * `page`: the address is one of the statistics page. Returns `rc`, which is -errno. */
int server_address_report(const char *label, const char *where, bool page, int rc);

bool server_address_is_unix(const struct server_address *address);

/* Notes which file a Unix socket has. Removes that file, unless another process has put another one
 * in its place. */
void server_address_note_file(struct server_address *address);
void server_address_remove_file(const struct server_address *address);

/* Whether the file of a Unix socket that listens was removed, so that no client reaches it. */
bool server_address_is_lost(const struct server_address *address);

/* Adds `fd` to the group. On failure closes it. A negative `fd` is an error of the caller's, which
 * is returned. 0 or -errno. */
MUST_USE int server_address_add_socket(struct server_address *address, int fd);

/* Lets the sockets of the group share their port. 0 or -errno. */
MUST_USE int server_address_share_port(const struct server_address *address);

/* Gives the group `sets` sockets. The new ones do not listen yet. 0 or -errno. */
MUST_USE int server_address_grow(struct server_address *address, size_t sets,
                                 struct os_socket_options options);

/* A generation accepts from all sockets that listen. */
void server_address_serve(struct server_address *address);

/* Closes the sockets that no generation has accepted from. */
void server_address_shrink(struct server_address *address);

/* Mends what a worker may have done to the sockets that listen: their other holders share it. Logs
 * an error for a socket that was shut down. */
void server_address_mend(const struct server_address *address);

/* Listens with the first socket, unless it does. This fails if another process has just begun to
 * listen there. 0 or -errno. */
MUST_USE int server_address_claim(struct server_address *address);

/* Listens with every socket, and sets the options that its connections inherit. 0 or -errno. */
MUST_USE int server_address_begin(struct server_address *address, const char *congestion,
                                  uint64_t send_timeout_ns);
