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

/* The port, or 0 when it has none. */
uint16_t os_socket_port(const struct os_socket_address *address);

/* Makes it an address whose port the kernel picks. */
void os_socket_forget_port(struct os_socket_address *address);

/* Whether both are the same address, as it was read. */
bool os_socket_same(const struct os_socket_address *a, const struct os_socket_address *b);

struct os_socket_options {
    bool share_port;        /* beside others of this user that do too; see os_socket_share_port */
    int defer_s;            /* TCP_DEFER_ACCEPT: connections that have sent nothing are not
                               accepted for about so many seconds; 0: at once */
    const char *congestion; /* TCP congestion control of its connections; NULL: the system's */
    mode_t mode;            /* of a Unix socket's file; 0: what the umask leaves */
};

/* Makes a socket that has its address and does not listen yet. A Unix socket file
 * that nobody listens on any more is replaced; one in use gives -EADDRINUSE, as does
 * a TCP address that somebody listens on. IPv6 sockets take no IPv4 traffic unless
 * the address is `*`. */
MUST_USE int os_socket_bind(const struct os_socket_address *address,
                            const struct os_socket_options *options);

/* Connections are let in from now on. -EADDRINUSE: another was faster. */
MUST_USE int os_socket_listen(int fd, int backlog);

/* Lets further sockets of this user have the address of a TCP socket, those that say
 * so too (SO_REUSEPORT). It may listen already; the kernel then spreads connections. */
MUST_USE int os_socket_share_port(int fd);

/* Sets the congestion control of a listener's connections to come; NULL: the system's. */
MUST_USE int os_socket_set_congestion(int fd, const char *name);

/* Makes a listener that somebody else opened non-blocking and CLOEXEC. -ENOTSOCK,
 * or -EPROTOTYPE: it is no listening stream socket of a family that is served here. */
MUST_USE int os_socket_adopt(int fd);

/* Sets what is set on our own listeners and can still be set on this one. 0 or -errno. */
MUST_USE int os_socket_tune(int fd, const struct os_socket_options *options);

/* Connects to a Unix stream socket. -ECONNREFUSED: nobody listens there; -EAGAIN:
 * somebody does, who is busy. */
MUST_USE int os_socket_connect(const char *path);

/* The address a listener got (its port, when 0 was asked). */
MUST_USE int os_socket_local(int fd, struct os_socket_address *ret_address);

/* How many segments the kernel has dropped at a listener: of connections for which there was no
 * room, and with TCP_DEFER_ACCEPT one of each. 0 where it does not tell. */
uint64_t os_socket_drops(int listener_fd);

/* How often too many connections waited at any listener of this network namespace; 0 where the
 * kernel does not tell. */
uint64_t os_socket_overflows(void);

/* Accepts one connection. -EAGAIN when none waits; errors of the connection
 * itself (ECONNABORTED and network errors, see accept(2)) are skipped over. */
MUST_USE int os_socket_accept(int listener_fd, struct os_socket_address *ret_peer);

/* Whether accept(2) failed with `error` for the sake of the connection it was about to accept,
 * which is lost: the next one may do. */
bool os_socket_lost_connection(int error);
