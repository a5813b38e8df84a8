/* SPDX-License-Identifier: MIT */
#include "server/listeners.h"

#include "log/error.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096, URL_MAX = 160 };

static const char *cure_of(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "; something listens there already: stop it, or choose another port with --listen";
    case EACCES:
        return "; ports below 1024 need privileges: start as root with --user, or choose a higher "
               "port with --listen";
    case EADDRNOTAVAIL:
        return "; this machine has no such address";
    case ENOENT:
        return "; no such congestion control in this kernel, or no such folder for the socket "
               "(see /proc/sys/net/ipv4/tcp_available_congestion_control)";
    default:
        return "";
    }
}

/* Opens the first socket of an address, and makes `address` what it got, so that
 * further ones share a port that the kernel picked. */
static int open_first(struct os_socket_address *address, const struct os_socket_options *options)
{
    int fd = os_socket_listen(address, options);
    if (fd < 0)
        return fd;
    int rc = os_socket_local(fd, address);
    if (rc < 0) {
        os_file_close(fd);
        return rc;
    }
    return fd;
}

static int duplicate(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : copy;
}

static int open_address(struct server_listeners *l, size_t index, const char *text, size_t threads,
                        const char *congestion)
{
    struct os_socket_address address;
    int rc = os_socket_parse(text, &address);
    if (rc < 0)
        return rc;
    bool unix_socket = address.storage.ss_family == AF_UNIX;
    struct os_socket_options options = {
        .backlog = BACKLOG,
        .defer_s = 1, /* the request is there when it is accepted, and epoll is not needed */
        .share_port = l->sets > 1,
        .congestion = congestion,
    };
    for (size_t set = 0; set < l->sets; set++) {
        int *fd = &l->fd[set * l->count + index];
        if (set == 0)
            *fd = open_first(&address, &options);
        else if (!unix_socket)
            *fd = os_socket_listen(&address, &options);
        else if (set % threads == 0)
            *fd = duplicate(l->fd[index]);
        else
            continue;
        if (*fd < 0) {
            rc = *fd;
            *fd = -1;
            return rc;
        }
    }
    char url[URL_MAX];
    if (!os_socket_url(&address, url, sizeof(url)))
        return -ENAMETOOLONG;
    l->url[index] = strdup(url);
    return l->url[index] ? 0 : -ENOMEM;
}

static bool is_missing(int error)
{
    return error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT;
}

static int open_all(struct server_listeners *l, const char *const *listen, size_t threads,
                    const char *congestion, bool by_default)
{
    size_t opened = 0;
    for (size_t i = 0; i < l->count; i++) {
        int rc = open_address(l, i, listen[i], threads, congestion);
        if (rc == 0) {
            opened++;
        } else if (!by_default || !is_missing(rc) || (i + 1 == l->count && opened == 0)) {
            log_error(LOG_ERROR, "cannot listen on %s: %s%s", listen[i], strerror(-rc),
                      cure_of(-rc));
            return rc;
        }
    }
    return 0;
}

int server_listeners_open(struct server_listeners *listeners, const char *const *listen,
                          size_t workers, size_t threads, const char *congestion, bool by_default)
{
    *listeners = (struct server_listeners){ .sets = workers * threads };
    struct server_listeners *l = listeners;
    while (listen[l->count])
        l->count++;
    l->fd = malloc(l->sets * l->count * sizeof(*l->fd));
    l->url = calloc(l->count, sizeof(*l->url));
    if (!l->fd || !l->url) {
        server_listeners_free(l);
        return -ENOMEM;
    }
    for (size_t i = 0; i < l->sets * l->count; i++)
        l->fd[i] = -1;
    int rc = open_all(l, listen, threads, congestion, by_default);
    if (rc < 0) {
        server_listeners_close(l, true);
        server_listeners_free(l);
    }
    return rc;
}

void server_listeners_keep(struct server_listeners *listeners, size_t worker, size_t threads)
{
    struct server_listeners *l = listeners;
    for (size_t i = 0; i < l->sets * l->count; i++) {
        if (i / l->count / threads == worker)
            continue;
        os_file_close(l->fd[i]);
        l->fd[i] = -1;
    }
}

void server_listeners_close(struct server_listeners *listeners, bool unlink_files)
{
    struct server_listeners *l = listeners;
    for (size_t i = 0; l->fd && i < l->sets * l->count; i++) {
        os_file_close(l->fd[i]);
        l->fd[i] = -1;
    }
    for (size_t i = 0; unlink_files && l->url && i < l->count; i++)
        if (l->url[i] && strncmp(l->url[i], "unix:", 5) == 0)
            (void)unlink(l->url[i] + 5); /* already gone is as good */
}

void server_listeners_free(struct server_listeners *listeners)
{
    for (size_t i = 0; listeners->url && i < listeners->count; i++)
        free(listeners->url[i]);
    free(listeners->url);
    free(listeners->fd);
    *listeners = (struct server_listeners){ 0 };
}
