/* SPDX-License-Identifier: MIT
 *
 * The listening sockets: the master opens and keeps them, worker processes
 * inherit them, so that neither a worker's death nor a reload loses what waits.
 *
 * The sockets belong to the addresses, and these are shared by all generations
 * (server/generation.h) that name them. A TCP address has a socket for each
 * thread that accepts, a group that shares the port (SO_REUSEPORT). A group only
 * grows: what waits in a socket that is closed is reset, so when fewer threads
 * accept than before, some of them take several sockets.
 *
 * A new socket of a group is bound at once, so that what is wrong shows early,
 * and listens only once its generation is about to serve: a reload that fails
 * leaves nobody waiting.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"
#include "server/inherited.h"

#include <stdbool.h>
#include <stddef.h>

enum { SERVER_URL_MAX = 160 };

struct server_address {
    struct server_address *next;
    struct os_socket_address asked, got; /* they differ in the port, where 0 was asked for */
    char url[SERVER_URL_MAX];
    int *fd;          /* the group */
    size_t count;     /* of them */
    size_t listening; /* so many of the first ones listen */
    unsigned users;   /* generations */
    bool adopted;     /* another process opened the sockets: a service manager or a predecessor */
    bool managed;     /* a service manager did, which keeps them and the socket file */
};

struct server_listeners;

/* Every address of the master on one side, the sites' or the statistics page's; zeroed: none. */
struct server_addresses {
    struct server_address *first;
    struct server_addresses *other;       /* those of the other side; NULL: there is none */
    const struct server_listeners *apart; /* these of the other side go on there; NULL: none */
    bool handed_over;                     /* a successor has them all: socket files stay */
};

/* Takes over listeners that were passed in, those of the statistics page to the other side, whose
 * addresses then need not be opened. 0 or -errno. Before the first generation. */
MUST_USE int server_addresses_adopt(struct server_addresses *addresses,
                                    const struct server_inherited *inherited);

/* Closes adopted listeners that nobody uses, and says so. After the first generation. */
void server_addresses_settle(struct server_addresses *addresses);

/* Closes all that is left. */
void server_addresses_close(struct server_addresses *addresses);

/* The addresses of one generation. Zeroed: none. */
struct server_listeners {
    size_t count;
    struct server_listener {
        struct server_address *address; /* NULL: it was passed over */
        size_t sockets;                 /* of its group, the first ones */
    } * each;
};

/* Takes every address of `listen` (NULL-terminated) into use for `sets` accepting
 * threads: those that are there already, with further sockets where the group is
 * too small, those that the other side gives up, with what waits in them, and new
 * ones. With `by_default` nobody asked for these very addresses: sockets of a
 * service manager take their place, and those the machine does not have are passed
 * over, except the last that is left. Failures are told in the error log with cause
 * and cure. 0 or -errno; on failure all is as it was. */
MUST_USE int server_listeners_open(struct server_listeners *listeners,
                                   struct server_addresses *addresses, const char *const *listen,
                                   size_t sets, const char *congestion, bool by_default);

/* Lets connections in: from now on they wait for the workers. 0 or -errno, told in
 * the error log. */
MUST_USE int server_listeners_begin(struct server_listeners *listeners, const char *congestion);

/* Gives the addresses up. Those that no other generation uses are closed here,
 * and their socket files removed; workers that have them may still empty them.
 * Idempotent. */
void server_listeners_close(struct server_listeners *listeners, struct server_addresses *addresses);

/* Writes the addresses, one a line, each behind `before`; without stdio, which needs
 * memory. Negative with errno on failure. */
int server_listeners_print(const struct server_listeners *listeners, int fd, const char *before);

/* The sockets of the sets `first` to `first + count - 1` of `sets`, set after set,
 * with *ret_columns places each, of which those that stay empty are -1. Gives an
 * array for free(); NULL when there is no memory. */
int *server_listeners_lay_out(const struct server_listeners *listeners, size_t sets, size_t first,
                              size_t count, size_t *ret_columns);

/* How many connections the kernel has dropped at the sockets that are open. */
uint64_t server_addresses_drops(const struct server_addresses *addresses);

/* In a worker: closes every socket but the `kept` ones in `keep`. */
void server_addresses_leave(const struct server_addresses *addresses, const int *keep, size_t kept);
