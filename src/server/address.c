/* SPDX-License-Identifier: MIT */
#include "server/address.h"

#include "base/span.h"
#include "log/error.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- failures ---- */

static const char *cure_of(const char *where, int error)
{
    const bool is_unix = span_starts(span_text(where), SPAN("unix:"));
    switch (error) {
    case EADDRINUSE:
        return is_unix ? "; another process listens there (`ss -lxp` shows which): stop it, or "
                         "choose another path"
                       : "; another process listens there (`ss -lp` shows which): stop it, or "
                         "choose another port";
    case EACCES:
        return is_unix ? "; give this user the right to make the socket there, or choose another "
                         "path"
                       : "; a port below 1024 needs privileges: start as root with --user, or "
                         "choose a higher port. A server that started without such a port has "
                         "given the privilege up: restart it";
    case EADDRNOTAVAIL:
        return "; this machine has no such address";
    case ENOENT:
        return is_unix ? "; make the folder of the socket, or choose another path"
                       : "; the kernel has no such congestion control: choose one of "
                         "/proc/sys/net/ipv4/tcp_available_congestion_control";
    default:
        return "";
    }
}

int server_address_report(const char *label, const char *where, bool page, int rc)
{
    const char *cure = cure_of(where, -rc);
    const bool by_default = label != NULL && label[0] == '\0';
    const char *option = !by_default || !span_ends(span_text(cure), SPAN(" port")) ? ""
                         : page ? " with --stats-listen"
                                : " with --listen";
    log_error(LOG_ERROR, "%scannot listen on %s%s: %s%s%s", label != NULL ? label : "", where,
              page ? " for the statistics page" : "", os_socket_reason(rc), cure, option);
    return rc;
}

/* ---- sockets ---- */

bool server_address_is_unix(const struct server_address *address)
{
    return address->asked.storage.ss_family == AF_UNIX;
}

static const char *path_of(const struct server_address *address)
{
    return address->url + strlen("unix:");
}

void server_address_note_file(struct server_address *address)
{
    if (server_address_is_unix(address))
        address->file = os_socket_file_at(path_of(address));
}

bool server_address_is_lost(const struct server_address *address)
{
    return server_address_is_unix(address) && !address->managed && address->listening > 0 &&
           os_file_is_absent(path_of(address));
}

void server_address_remove_file(const struct server_address *address)
{
    if (server_address_is_unix(address) && address->url[0])
        (void)os_socket_unlink(path_of(address), &address->file); /* an error: it is not ours */
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
        address->served = address->listening = address->count;
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

void server_address_serve(struct server_address *address)
{
    address->served = address->listening;
}

void server_address_shrink(struct server_address *address)
{
    while (address->count > address->served) {
        const int fd = address->fd[--address->count];
        if (address->count < address->listening)
            (void)shutdown(fd, SHUT_RDWR); /* workers of the generation that failed still have it */
        os_file_close(fd);
    }
    if (address->listening > address->count)
        address->listening = address->count;
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

int server_address_claim(struct server_address *address)
{
    const int rc = address->listening == 0 ? os_socket_listen(address->fd[0], SERVER_BACKLOG) : 0;
    if (rc == 0 && address->listening == 0)
        address->listening = 1;
    return rc;
}

/* The first socket listens before it shares its port. So the kernel reports a second server of this
 * user on the same port. */
int server_address_begin(struct server_address *address, const char *congestion,
                         uint64_t send_timeout_ns)
{
    int rc = server_address_claim(address);
    if (rc == 0 && address->listening == 1 && address->count > 1)
        rc = server_address_share_port(address);
    while (address->listening < address->count && rc == 0) {
        rc = os_socket_listen(address->fd[address->listening], SERVER_BACKLOG);
        address->listening += rc == 0;
    }
    for (size_t i = 0; i < address->count && rc == 0 && !server_address_is_unix(address); i++) {
        rc = os_socket_set_congestion(address->fd[i], congestion);
        if (rc == 0)
            rc = os_socket_set_user_timeout(address->fd[i], send_timeout_ns);
    }
    return rc;
}
