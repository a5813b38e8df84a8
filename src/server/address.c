/* SPDX-License-Identifier: MIT */
#include "server/address.h"

#include "log/error.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

bool server_address_is_unix(const struct server_address *address)
{
    return address->asked.storage.ss_family == AF_UNIX;
}

int server_address_add_socket(struct server_address *address, int fd)
{
    if (fd < 0)
        return fd;
    int *grown = realloc(address->fd, (address->count + 1) * sizeof(*grown));
    if (!grown) {
        os_file_close(fd);
        return -ENOMEM;
    }
    address->fd = grown;
    address->fd[address->count++] = fd;
    return 0;
}

int server_address_share_port(const struct server_address *address)
{
    int rc = 0;
    for (size_t i = 0; i < address->count && rc == 0; i++)
        rc = os_socket_share_port(address->fd[i]);
    return rc;
}

/* A service manager decides the size of its group: further threads share its sockets. */
static int duplicate(struct server_address *address, size_t sets)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && address->count < sets; i++) {
        int fd = fcntl(address->fd[i], F_DUPFD_CLOEXEC, 0);
        rc = server_address_add_socket(address, fd < 0 ? -errno : fd);
        address->listening = address->count;
    }
    return rc;
}

int server_address_grow(struct server_address *address, size_t sets,
                        struct os_socket_options options)
{
    if (server_address_is_unix(address) || address->count >= sets)
        return 0;
    if (address->managed)
        return duplicate(address, sets);
    /* A group that does not listen yet shares its port in server_address_begin. */
    int rc = address->listening > 0 ? server_address_share_port(address) : 0;
    options.share_port = true;
    while (rc == 0 && address->count < sets)
        rc = server_address_add_socket(address, os_socket_bind(&address->got, &options));
    return rc;
}

void server_address_shrink(struct server_address *address)
{
    while (address->count > address->listening)
        os_file_close(address->fd[--address->count]);
}

void server_address_mend(const struct server_address *address)
{
    const bool any_port = os_socket_port(&address->asked) == 0;
    for (size_t i = 0; i < address->listening; i++) {
        const int rc =
            os_socket_mend(address->fd[i], any_port ? &address->got : NULL, SERVER_BACKLOG);
        if (rc != 0)
            log_error(LOG_ERROR,
                      "a worker, which may have been taken over, had shut a socket of %s; %s%s",
                      address->url, rc > 0 ? "it listens again" : "it cannot listen again: ",
                      rc > 0 ? "" : strerror(-rc));
    }
}

/* The first socket listens before it shares its port. So the kernel reports a second server of this
 * user on the same port. */
int server_address_begin(struct server_address *address, const char *congestion,
                         uint64_t send_timeout_ns)
{
    int rc = 0;
    while (address->listening < address->count && rc == 0) {
        rc = os_socket_listen(address->fd[address->listening], SERVER_BACKLOG);
        address->listening += rc == 0;
        if (rc == 0 && address->listening == 1 && address->count > 1)
            rc = server_address_share_port(address);
    }
    for (size_t i = 0; i < address->count && rc == 0 && !server_address_is_unix(address); i++) {
        rc = os_socket_set_congestion(address->fd[i], congestion);
        if (rc == 0)
            rc = os_socket_set_user_timeout(address->fd[i], send_timeout_ns);
    }
    return rc;
}
