/* SPDX-License-Identifier: MIT
 *
 * Stream sockets: addresses from text, listeners, accepted connections. Every
 * descriptor is non-blocking and CLOEXEC from birth; functions return a
 * descriptor or 0, and -errno on failure.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>
#include <sys/socket.h>

struct os_socket_address {
    struct sockaddr_storage storage;
    socklen_t len;
};

/* Reads `PORT`, `ADDR:PORT`, `[V6]:PORT`, `*:PORT` (every IPv4 and IPv6 address)
 * or `unix:PATH`. Numeric addresses only: nothing is looked up. -EINVAL for
 * anything else, -ENAMETOOLONG for a path past the limit of 107 bytes. A bare
 * port means 127.0.0.1. */
MUST_USE int os_socket_parse(const char *text, struct os_socket_address *ret_address);

/* How clients name the address: "http://127.0.0.1:8080/", "http://[::1]:8080/"
 * or "unix:/path". Returns false when `size` is too small. */
bool os_socket_url(const struct os_socket_address *address, char *out, size_t size);

struct os_socket_options {
    int backlog;
    bool share_port;        /* SO_REUSEPORT: several listeners of one address */
    int defer_s;            /* TCP_DEFER_ACCEPT: connections that have sent nothing are not
                               accepted for about so many seconds; 0: at once */
    const char *congestion; /* TCP congestion control of its connections; NULL: the system's */
};

/* Opens a listener. A Unix socket file that nobody listens on any more is
 * replaced; one in use gives -EADDRINUSE. IPv6 listeners take no IPv4 traffic
 * unless the address is `*`. */
MUST_USE int os_socket_listen(const struct os_socket_address *address,
                              const struct os_socket_options *options);

/* The address a listener got (its port, when 0 was asked). */
MUST_USE int os_socket_local(int fd, struct os_socket_address *ret_address);

/* Accepts one connection. -EAGAIN when none waits; errors of the connection
 * itself (ECONNABORTED and network errors, see accept(2)) are skipped over. */
MUST_USE int os_socket_accept(int listener_fd, struct os_socket_address *ret_peer);
