/* SPDX-License-Identifier: MIT
 *
 * Stream sockets: addresses from text, listeners, accepted connections. Every
 * descriptor is non-blocking and CLOEXEC from the start; functions return a
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
 * or `unix:PATH`. Only numeric addresses: no name is resolved. -EINVAL for
 * other text, -ENAMETOOLONG for a path past the limit of 107 bytes. A bare
 * port means 127.0.0.1. */
MUST_USE int os_socket_parse(const char *text, struct os_socket_address *ret_address);

/* The address as clients write it: "http://127.0.0.1:8080/", "http://[::1]:8080/"
 * or "unix:/path". Returns false when `size` is too small. */
bool os_socket_url(const struct os_socket_address *address, char *out, size_t size);

/* The port, or 0 when it has none. */
uint16_t os_socket_port(const struct os_socket_address *address);

/* Makes it an address whose port the kernel picks. */
void os_socket_forget_port(struct os_socket_address *address);

/* Whether both are the same address. */
bool os_socket_same(const struct os_socket_address *a, const struct os_socket_address *b);

struct os_socket_options {
    bool share_port;        /* with other sockets of this user; see os_socket_share_port */
    int defer_s;            /* TCP_DEFER_ACCEPT: a connection is accepted when it has sent
                               data, or after about this many seconds; 0: at once */
    const char *congestion; /* TCP congestion control of its connections; NULL: the system's */
    mode_t mode;            /* of the file of a Unix socket; 0: by the umask */
};

/* Makes a socket with the address, which does not listen yet. A stale Unix socket file is replaced.
 * -EADDRINUSE: another socket listens at the address. -ENOTSOCK: the path names something other
 * than a socket, which is kept. An IPv6 socket accepts no IPv4 connections
 * unless the address is `*`. */
MUST_USE int os_socket_bind(const struct os_socket_address *address,
                            const struct os_socket_options *options);

/* The error of os_socket_bind in words. */
const char *os_socket_reason(int error);

/* Listens. -EADDRINUSE: another socket listens there since the bind. */
MUST_USE int os_socket_listen(int fd, int backlog);

/* Allows further sockets of this user at the address of a TCP socket, if they have SO_REUSEPORT
 * too. The socket may listen already. The kernel spreads connections over the sockets. */
MUST_USE int os_socket_share_port(int fd);

/* Sets the congestion control of a listener's future connections; NULL: the system's. */
MUST_USE int os_socket_set_congestion(int fd, const char *name);

/* Sets TCP_USER_TIMEOUT for a TCP listener's future connections: the kernel drops a connection
 * whose client acknowledges nothing, or opens no window, a second longer than this. So a program
 * with the same limit acts first. Beyond 24 days the system decides. */
MUST_USE int os_socket_set_user_timeout(int fd, uint64_t timeout_ns);

/* Makes a listener of another process non-blocking and CLOEXEC. -ENOTSOCK, or -EPROTOTYPE: it is no
 * listening stream socket of a supported family. */
MUST_USE int os_socket_adopt(int fd);

/* Sets the options of os_socket_bind that a bound socket can still get, for a listener of another
 * process. That process may still use it, so the congestion control stays. 0 or -errno. */
MUST_USE int os_socket_tune(int fd, const struct os_socket_options *options);

/* Connects to a Unix stream socket. -ECONNREFUSED: no process listens there. -EAGAIN: the backlog
 * of the listener is full. */
MUST_USE int os_socket_connect(const char *path);

/* A file of a Unix socket. Zeroed: it is not known. */
struct os_socket_file {
    dev_t device;
    ino_t inode;
};

/* The file that is at the path now. Zeroed: there is none. Call it when the socket is bound. */
struct os_socket_file os_socket_file_at(const char *path);

/* Removes the file of a Unix socket. Another process may have made one at the path: only `own` is
 * removed; NULL: any. 0 or -errno. -ENOTSOCK: the file has another type. -ESTALE: it is not `own`.
 */
int os_socket_unlink(const char *path, const struct os_socket_file *own);

/* The address of a listener, with the port that the kernel picked for port 0. */
MUST_USE int os_socket_local(int fd, struct os_socket_address *ret_address);

/* How many segments the kernel has dropped at a listener. These are the segments of connections
 * that did not fit into the backlog, and with TCP_DEFER_ACCEPT one of each connection. 0 if the
 * kernel has no number. */
uint64_t os_socket_drops(int listener_fd);

/* Undoes what another holder of a listener may have done to it: it is non-blocking again, and gives
 * its connections the options of os_socket_bind. A TCP socket that was shut down listens again. It
 * has lost a port that the kernel had chosen, so `chosen` is the address with that port; NULL: the
 * port was asked for. 1: it had been shut down. 0: it had not. -errno: it does not listen. */
MUST_USE int os_socket_mend(int listener_fd, const struct os_socket_address *chosen, int backlog);

/* The kernel takes at most 64 KiB of output that it cannot send yet, and the bytes that are on
 * their way. This call lifts the limit of a connection: fewer and larger sends cost less CPU time.
 * It is for clients that have read some of an answer. A client that reads nothing would otherwise
 * cost 4 MB of kernel memory, and the time to fill it. A Unix socket ignores the call. */
void os_socket_lift_unsent(int fd);

/* How much a client has taken since its connection was full, as far as the kernel tells: the memory
 * of the output that it has freed since. It tells so after os_socket_lift_unsent; otherwise 0. A
 * connection with 4 MB of output can be written to only when a third of that is free. */
uint64_t os_socket_taken(int fd);

/* Makes the close of a connection a reset, which discards what the kernel still has to send. A Unix
 * socket ignores it. */
void os_socket_reset_at_close(int fd);

/* How often the backlog of any listener of this network namespace overflowed; 0 if the kernel has
 * no number. */
uint64_t os_socket_overflows(void);

/* Accepts one connection. -EAGAIN: none waits. A connection that has failed already (ECONNABORTED
 * and network errors, see accept(2)) is skipped. */
MUST_USE int os_socket_accept(int listener_fd, struct os_socket_address *ret_peer);

/* Whether accept(2) failed with `error` because the connection itself had failed: the next one may
 * succeed. */
bool os_socket_lost_connection(int error);
