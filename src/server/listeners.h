/* SPDX-License-Identifier: MIT
 *
 * The listening sockets. The master opens and keeps them, and worker processes inherit them. So
 * neither the death of a worker nor a reload loses a connection that waits in a backlog.
 *
 * A socket belongs to an address. All generations (server/generation.h) that name an address share
 * it. A TCP address has one socket for each thread that accepts: a group that shares the port
 * (SO_REUSEPORT). A group only grows, because closing a socket resets the connections in its
 * backlog. When fewer threads accept than before, some of them serve several sockets.
 *
 * A new socket of a group is bound at once, so that errors show early. It listens only when its
 * generation is about to serve: the kernel deals connections to every socket that listens, and
 * after a failed reload no thread would accept them.
 */
#pragma once

#include "base/check.h"
#include "server/address.h"
#include "server/inherited.h"

#include <stdbool.h>
#include <stddef.h>

struct config_store;
struct server_listeners;

/* All addresses of one kind: those of the sites, or those of the statistics page. Zeroed: none. */
struct server_addresses {
    struct server_address *first;
    struct server_addresses *other;          /* the addresses of the other kind; NULL: none */
    const struct server_listeners *reserved; /* listeners of the other kind that stay in use: their
                                                sockets cannot move here; NULL: none */
    bool handed_over;                        /* a successor serves them: socket files stay */
    bool borrowed; /* a predecessor still serves those that were adopted: likewise */
    uint64_t dead_waiters_until_ns; /* as in struct server (model/model.h) */
};

/* Takes the listeners that another process opened, those of the statistics page into the other
 * kind. Their addresses need not be opened then. 0 or -errno. Call it before the first
 * generation. */
MUST_USE int server_listeners_adopt(struct server_addresses *addresses,
                                    const struct server_inherited *inherited);

/* A process that accepted from these addresses was killed, or failed. The kernel ends its rings
 * some time after it. */
void server_listeners_note_death(struct server_addresses *addresses, uint64_t now_ns);

/* The first generation serves: the adopted listeners belong to this process now. Closes those that
 * no generation uses, and logs each. */
void server_listeners_close_unused(struct server_addresses *addresses);

/* Closes all that is left. */
void server_listeners_close_all(struct server_addresses *addresses);

/* The addresses of one generation. Zeroed: none. */
struct server_listeners {
    size_t count;
    struct server_listener {
        struct server_address *address; /* NULL: it was skipped */
        size_t sockets;                 /* how many of the first ones of its group */
        bool tls;                       /* its connections begin with a TLS handshake */
    } * each;
    bool page; /* of the statistics page, for messages */
};

/* The addresses that a configuration asks for. All is borrowed during a call. */
struct server_listeners_request {
    const struct config_store *store;
    bool page;     /* by `stats-listen`, not `listen` */
    bool any_port; /* 127.0.0.1 with a port that the kernel picks instead */
    size_t sets;   /* threads that accept */
};

/* Starts to use every address of the request. An address that is open already is used again,
 * with further sockets if its group is too small. The sockets of an address that the other kind
 * gives up move here, with their backlogs. Other addresses are opened.
 *
 * By default, without a `listen` of the operator, the sockets of a service manager are used
 * instead, and addresses that the machine lacks are skipped, except the last one.
 *
 * 0 or -errno. The error log then has the setting, the cause and what to do, and all is as it
 * was. */
MUST_USE int server_listeners_open(struct server_listeners *listeners,
                                   struct server_addresses *addresses,
                                   const struct server_listeners_request *request);

/* Listens: from now on connections wait for the workers. When a client takes no output, the kernel
 * keeps the output little longer than `send_timeout_ns`. 0 or -errno, reported in the error log. */
MUST_USE int server_listeners_begin(struct server_listeners *listeners, const char *congestion,
                                    uint64_t send_timeout_ns);

/* From now on the workers accept from all sockets. A group that is closed before that gets its
 * former size. */
void server_listeners_serve(const struct server_listeners *listeners);

/* Ends the use of the addresses. An address that no other generation uses is closed here, and its
 * socket file removed; workers that inherited it may still empty its backlog. Idempotent. */
void server_listeners_close(struct server_listeners *listeners, struct server_addresses *addresses);

/* The port of the first TCP address with TLS, which plain requests are redirected to. 0: none. */
uint16_t server_listeners_tls_port(const struct server_listeners *listeners);

/* Writes the URL with the scheme that this generation uses. The listener has an address. */
void server_listeners_url(const struct server_listener *listener, char out[SERVER_URL_MAX + 1]);

/* Writes the URLs, one a line. It does not use stdio, which needs memory. Negative with errno on
 * failure. */
int server_listeners_print(const struct server_listeners *listeners, int fd);

/* The sockets of the sets `first` to `first + count - 1` of `sets`, set after set. Each set has
 * *ret_columns places; -1 marks an empty place. Gives an array for free(); NULL: no memory. */
int *server_listeners_lay_out(const struct server_listeners *listeners, size_t sets, size_t first,
                              size_t count, size_t *ret_columns);

/* Which columns of server_listeners_lay_out are TLS listeners. Gives an array for free(); NULL: no
 * memory. */
bool *server_listeners_tls(const struct server_listeners *listeners, size_t sets);

/* How many connections the kernel has dropped at the sockets that are open. */
uint64_t server_listeners_drops(const struct server_addresses *addresses);

/* In a worker: closes every socket except the `kept` ones in `keep`. */
void server_listeners_leave(const struct server_addresses *addresses, const int *keep, size_t kept);
