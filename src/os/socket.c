/* SPDX-License-Identifier: MIT */
#include "os/socket.h"

#include "base/duration.h"
#include "base/num.h"
#include "os/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { ADDRESS_TEXT_MAX = 64, CONGESTION_NAME_MAX = 32 };

/* ---- addresses ---- */

static int parse_unix(const char *path, struct os_socket_address *ret_address)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    if (len == 0)
        return -EINVAL;
    if (len >= sizeof(un.sun_path))
        return -ENAMETOOLONG;
    memcpy(un.sun_path, path, len + 1);
    *ret_address = (struct os_socket_address){
        .len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1)
    };
    memcpy(&ret_address->storage, &un, sizeof(un));
    return 0;
}

static int make_v4(struct in_addr host, uint16_t port, struct os_socket_address *ret_address)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = host };
    *ret_address = (struct os_socket_address){ .len = sizeof(in) };
    memcpy(&ret_address->storage, &in, sizeof(in));
    return 0;
}

static int make_v6(struct in6_addr host, uint16_t port, struct os_socket_address *ret_address)
{
    struct sockaddr_in6 in = { .sin6_family = AF_INET6,
                               .sin6_port = htons(port),
                               .sin6_addr = host };
    *ret_address = (struct os_socket_address){ .len = sizeof(in) };
    memcpy(&ret_address->storage, &in, sizeof(in));
    return 0;
}

static int parse_host(struct span host, uint16_t port, struct os_socket_address *ret_address)
{
    char text[ADDRESS_TEXT_MAX];
    struct in_addr v4;
    struct in6_addr v6;
    if (span_equal(host, SPAN("*")))
        return make_v6(in6addr_any, port, ret_address);
    if (span_equal(host, SPAN("localhost")))
        host = SPAN("127.0.0.1");
    bool bracketed = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (bracketed)
        host = span_of(host.at + 1, host.len - 2);
    if (host.len == 0 || host.len >= sizeof(text))
        return -EINVAL;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (bracketed)
        return inet_pton(AF_INET6, text, &v6) == 1 ? make_v6(v6, port, ret_address) : -EINVAL;
    return inet_pton(AF_INET, text, &v4) == 1 ? make_v4(v4, port, ret_address) : -EINVAL;
}

int os_socket_parse(const char *text, struct os_socket_address *ret_address)
{
    struct span whole = span_text(text);
    if (span_starts(whole, SPAN("unix:")))
        return parse_unix(text + 5, ret_address);

    const char *colon = strrchr(text, ':');
    struct span host = SPAN("127.0.0.1");
    struct span port_text = whole;
    if (colon) {
        host = span_of(text, (size_t)(colon - text));
        port_text = span_text(colon + 1);
    }
    uint64_t port;
    if (port_text.len > 5 || !num_parse_u64(port_text, &port) || port > UINT16_MAX)
        return -EINVAL;
    return parse_host(host, (uint16_t)port, ret_address);
}

/* An abstract name begins with NUL, which is written @. */
static int format_unix(const struct os_socket_address *address, char *out, size_t size)
{
    struct sockaddr_un un;
    size_t before = offsetof(struct sockaddr_un, sun_path);
    memcpy(&un, &address->storage, sizeof(un));
    if (address->len <= before || un.sun_path[0] != '\0')
        return snprintf(out, size, "unix:%s", un.sun_path);
    return snprintf(out, size, "unix:@%.*s", (int)(address->len - before - 1), un.sun_path + 1);
}

bool os_socket_url(const struct os_socket_address *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    int len = -1;
    if (address->storage.ss_family == AF_UNIX) {
        len = format_unix(address, out, size);
    } else if (address->storage.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &address->storage, sizeof(in));
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        len = snprintf(out, size, "http://%s:%u/", host, ntohs(in.sin_port));
    } else if (address->storage.ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, &address->storage, sizeof(in));
        inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
        len = snprintf(out, size, "http://[%s]:%u/", host, ntohs(in.sin6_port));
    }
    return len > 0 && (size_t)len < size;
}

/* ---- listeners ---- */

static int set_flag(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static bool is_any_v6(const struct os_socket_address *address)
{
    struct sockaddr_in6 in;
    memcpy(&in, &address->storage, sizeof(in));
    return memcmp(&in.sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0;
}

/* The default congestion control of the system. */
static int find_default_congestion(char *out, socklen_t size)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out, &size) < 0 ? -errno : 0;
    os_file_close(fd);
    return rc;
}

int os_socket_set_congestion(int fd, const char *name)
{
    char usual[CONGESTION_NAME_MAX] = "";
    int rc = name ? 0 : find_default_congestion(usual, sizeof(usual) - 1);
    if (rc < 0)
        return rc;
    if (!name)
        name = usual;
    socklen_t len = (socklen_t)strlen(name);
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, len) < 0 ? -errno : 0;
}

int os_socket_set_user_timeout(int fd, uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / DURATION_MS + 1000;
    return set_flag(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms <= INT_MAX ? (int)ms : 0);
}

/* The options that decide whether the address is free. They must be set before bind. */
static int set_address_options(int fd, const struct os_socket_address *address,
                               const struct os_socket_options *options)
{
    int rc = set_flag(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc == 0 && options->share_port)
        rc = set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (rc == 0 && address->storage.ss_family == AF_INET6)
        rc = set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_any_v6(address) ? 0 : 1);
    return rc;
}

/* What os_socket_lift_unsent lifts. More than most answers, so that their clients cause no call. */
enum { UNSENT_MAX = 64 * 1024 };

/* Accepted sockets inherit these options: no connection needs a setsockopt. */
static int set_tcp_options(int fd, const struct os_socket_options *options)
{
    int rc = set_flag(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    (void)set_flag(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_MAX); /* some kernels have none */
    if (rc == 0)
        rc = set_flag(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, options->defer_s);
    return rc;
}

static int connect_unix(const struct os_socket_address *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address->storage, address->len) == 0)
        return fd;
    int rc = -errno;
    os_file_close(fd);
    return rc;
}

int os_socket_connect(const char *path)
{
    struct os_socket_address address;
    int rc = parse_unix(path, &address);
    return rc < 0 ? rc : connect_unix(&address);
}

struct os_socket_file os_socket_file_at(const char *path)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return (struct os_socket_file){ 0 };
    return (struct os_socket_file){ .device = file.st_dev, .inode = file.st_ino };
}

int os_socket_unlink(const char *path, const struct os_socket_file *own)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return -errno;
    if (!S_ISSOCK(file.st_mode))
        return -ENOTSOCK;
    if (own && (file.st_dev != own->device || file.st_ino != own->inode))
        return -ESTALE;
    return unlink(path) < 0 ? -errno : 0;
}

/* Removes a socket file that no process listens on. A connection to a file of another type is
 * refused, too. */
static int remove_stale(const struct os_socket_address *address)
{
    int fd = connect_unix(address);
    if (fd >= 0)
        os_file_close(fd);
    if (fd != -ECONNREFUSED)
        return -EADDRINUSE;
    struct sockaddr_un un;
    memcpy(&un, &address->storage, sizeof(un));
    return os_socket_unlink(un.sun_path, NULL);
}

static int bind_address(int fd, const struct os_socket_address *address)
{
    const struct sockaddr *name = (const struct sockaddr *)&address->storage;
    if (bind(fd, name, address->len) == 0)
        return 0;
    if (errno != EADDRINUSE || address->storage.ss_family != AF_UNIX)
        return -errno;
    int rc = remove_stale(address);
    if (rc == 0 && bind(fd, name, address->len) < 0)
        rc = -errno;
    return rc;
}

int os_socket_bind(const struct os_socket_address *address, const struct os_socket_options *options)
{
    int family = address->storage.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = 0;
    if (family != AF_UNIX) {
        rc = set_address_options(fd, address, options);
        if (rc == 0)
            rc = set_tcp_options(fd, options);
        if (rc == 0 && options->congestion)
            rc = os_socket_set_congestion(fd, options->congestion);
    } else if (options->mode != 0 &&
               fchmod(fd, options->mode) < 0) { /* the file inherits the mode */
        rc = -errno;
    }
    if (rc == 0)
        rc = bind_address(fd, address);
    if (rc < 0) {
        os_file_close(fd);
        return rc;
    }
    return fd;
}

const char *os_socket_reason(int error)
{
    return error == -ENOTSOCK ? "the path names a file that is no socket; remove the file, or "
                                "choose another path"
                              : strerror(-error);
}

int os_socket_listen(int fd, int backlog)
{
    return listen(fd, backlog) < 0 ? -errno : 0;
}

int os_socket_share_port(int fd)
{
    return set_flag(fd, SOL_SOCKET, SO_REUSEPORT, 1);
}

bool os_socket_same(const struct os_socket_address *a, const struct os_socket_address *b)
{
    return a->len == b->len && memcmp(&a->storage, &b->storage, a->len) == 0;
}

uint16_t os_socket_port(const struct os_socket_address *address)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &address->storage, sizeof(in));
    memcpy(&in6, &address->storage, sizeof(in6));
    switch (address->storage.ss_family) {
    case AF_INET:
        return ntohs(in.sin_port);
    case AF_INET6:
        return ntohs(in6.sin6_port);
    default:
        return 0;
    }
}

void os_socket_forget_port(struct os_socket_address *address)
{
    struct sockaddr_in in;
    if (os_socket_port(address) == 0)
        return;
    memcpy(&in, &address->storage, sizeof(in)); /* the port has the same place in both families */
    in.sin_port = 0;
    memcpy(&address->storage, &in, sizeof(in));
}

static bool has_option(int fd, int option, int expected)
{
    int value = 0;
    socklen_t len = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == expected;
}

int os_socket_adopt(int fd)
{
    struct os_socket_address address = { .len = 0 };
    int rc = os_socket_local(fd, &address);
    if (rc < 0)
        return rc;
    int family = address.storage.ss_family;
    bool served = family == AF_INET || family == AF_INET6 || family == AF_UNIX;
    if (!served || !has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1))
        return -EPROTOTYPE;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return -errno;
    return 0;
}

int os_socket_tune(int fd, const struct os_socket_options *options)
{
    struct os_socket_address address = { .len = 0 };
    int rc = os_socket_local(fd, &address);
    return rc < 0 || address.storage.ss_family == AF_UNIX ? rc : set_tcp_options(fd, options);
}

/* Further sockets of a group have asked for the port. The kernel refuses to bind these again. */
static int listen_again(int fd, const struct os_socket_address *chosen, int backlog)
{
    if (chosen && bind(fd, (const struct sockaddr *)&chosen->storage, chosen->len) < 0 &&
        errno != EINVAL)
        return -errno;
    return os_socket_listen(fd, backlog);
}

int os_socket_mend(int listener_fd, const struct os_socket_address *chosen, int backlog)
{
    const struct linger none = { 0 };
    (void)fcntl(listener_fd, F_SETFL, O_RDWR | O_NONBLOCK);
    (void)setsockopt(listener_fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    (void)set_flag(listener_fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_MAX);
    if (!has_option(listener_fd, SO_ACCEPTCONN, 0))
        return 0;
    const int rc = listen_again(listener_fd, chosen, backlog);
    return rc < 0 ? rc : 1;
}

int os_socket_local(int fd, struct os_socket_address *ret_address)
{
    struct os_socket_address address = { .len = sizeof(address.storage) };
    if (getsockname(fd, (struct sockaddr *)&address.storage, &address.len) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}

bool os_socket_lost_connection(int error)
{
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

int os_socket_accept(int listener_fd, struct os_socket_address *ret_peer)
{
    for (;;) {
        ret_peer->len = sizeof(ret_peer->storage);
        int fd = accept4(listener_fd, (struct sockaddr *)&ret_peer->storage, &ret_peer->len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (!os_socket_lost_connection(errno))
            return -errno;
    }
}

uint64_t os_socket_drops(int listener_fd)
{
    uint32_t memory[SK_MEMINFO_VARS] = { 0 };
    socklen_t len = sizeof(memory);
    return getsockopt(listener_fd, SOL_SOCKET, SO_MEMINFO, memory, &len) == 0
               ? memory[SK_MEMINFO_DROPS]
               : 0;
}

/* Names in one line, their values in the next one. */
static uint64_t value_by_name(struct span names, struct span values, struct span wanted)
{
    uint64_t value = 0;
    struct span name;
    while ((name = span_take_word(&names)).len > 0) {
        struct span text = span_take_word(&values);
        if (span_equal(name, wanted))
            return num_parse_u64(text, &value) ? value : 0;
    }
    return 0;
}

uint64_t os_socket_overflows(void)
{
    char text[16384];
    int fd = open("/proc/self/net/netstat", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    const char *names = strstr(text, "TcpExt: "), *values = names ? strchr(names, '\n') : NULL;
    if (!values)
        return 0;
    return value_by_name(span_of(names, (size_t)(values - names)),
                         span_of(values + 1, strcspn(values + 1, "\n")), SPAN("ListenOverflows"));
}

void os_socket_lift_unsent(int fd)
{
    (void)set_flag(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0); /* 0: as the system has it */
}

/* Sends fill the memory that the socket may use, so all of it that is free has been freed since.
 * The last one may leave up to a third unused, which then counts once. A socket with a third free
 * can be written to: no send waits for it. While the limit of UNSENT_MAX holds, sends leave most of
 * it unused. */
uint64_t os_socket_taken(int fd)
{
    uint32_t memory[SK_MEMINFO_VARS] = { 0 };
    int unsent_max = 0;
    socklen_t len = sizeof(memory), unsent_len = sizeof(unsent_max);
    if (getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max, &unsent_len) < 0 ||
        unsent_max != 0 || getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) < 0)
        return 0;
    const uint32_t used = memory[SK_MEMINFO_WMEM_QUEUED], most = memory[SK_MEMINFO_SNDBUF];
    return used < most && most - used < used / 2 ? most - used : 0;
}

void os_socket_reset_at_close(int fd)
{
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}
