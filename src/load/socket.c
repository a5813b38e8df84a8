/* SPDX-License-Identifier: MIT */
#include "load/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

enum load_error load_socket_error(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ENOENT: /* for a Unix socket */
        return LOAD_connect_refused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
        return LOAD_connect_unreachable;
    case ETIMEDOUT:
        return LOAD_connect_timeout;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return LOAD_no_descriptor;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return LOAD_no_port;
    default:
        return LOAD_connect_other;
    }
}

/* Binds to one of the plan's source addresses, in turn. */
static int choose_source(const struct load_plan *plan, unsigned turn, int fd, int family)
{
    unsigned at = turn % plan->source_count, tried = 0;
    while (plan->sources[at].ss_family != family && ++tried < plan->source_count)
        at = at + 1 < plan->source_count ? at + 1 : 0;
    const struct sockaddr_storage *source = &plan->sources[at];
    int on = 1; /* connect chooses the port, so that each source has all ports for each peer */
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return bind(fd, (const struct sockaddr *)source, len) < 0 ? -errno : 0;
}

int load_socket_connect(const struct load_plan *plan, const struct load_target *target,
                        unsigned turn)
{
    int family = target->address.ss_family, on = 1, rc = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX) { /* a request must not wait for the ACK of an earlier one */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (plan->source_count > 0)
            rc = choose_source(plan, turn, fd, family);
    }
    if (rc == 0 &&
        connect(fd, (const struct sockaddr *)&target->address, target->address_len) < 0 &&
        errno != EINPROGRESS)
        rc = -errno;
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

ssize_t load_socket_send(int fd, struct iovec *pieces, unsigned count)
{
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = count };
    return count == 1 ? send(fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
                      : sendmsg(fd, &message, MSG_NOSIGNAL);
}
