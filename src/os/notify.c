/* SPDX-License-Identifier: MIT */
#include "os/notify.h"

#include "base/num.h"
#include "os/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUSY_USEC = 100000 };

/* A path, or an abstract name, which begins with @. */
static int parse_address(const char *text, struct os_notify *ret_notify)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    size_t len = strlen(text);
    bool abstract = text[0] == '@';
    if ((text[0] != '/' && !abstract) || len < 2)
        return -EAFNOSUPPORT;
    if (len >= sizeof(un.sun_path))
        return -ENAMETOOLONG;
    memcpy(un.sun_path, text, len);
    if (abstract)
        un.sun_path[0] = '\0';
    /* The length counts the NUL of a path; an abstract name has none. */
    ret_notify->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + !abstract);
    memcpy(&ret_notify->address, &un, sizeof(un));
    return 0;
}

static int open_notify_socket(void)
{
    struct timeval busy = { .tv_usec = BUSY_USEC };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &busy, sizeof(busy)) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

/* The interval of the watchdog of this process, in nanoseconds; 0: no watchdog. */
static uint64_t watchdog_of(const char *usec, const char *pid)
{
    uint64_t value, owner;
    if (!usec || !num_parse_u64(span_text(usec), &value) || value > UINT64_MAX / 1000)
        return 0;
    if (pid && (!num_parse_u64(span_text(pid), &owner) || owner != (uint64_t)getpid()))
        return 0;
    return value * 1000;
}

int os_notify_open(struct os_notify *ret_notify)
{
    *ret_notify = (struct os_notify){ .fd = -1 };
    const char *text = getenv("NOTIFY_SOCKET");
    int rc = 0;
    if (text && text[0]) {
        rc = parse_address(text, ret_notify);
        if (rc == 0)
            rc = ret_notify->fd = open_notify_socket();
        if (rc >= 0)
            ret_notify->watchdog_ns = watchdog_of(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    }
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return rc < 0 ? rc : 0;
}

void os_notify_close(struct os_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

int os_notify_send(const struct os_notify *notify, const char *format, ...)
{
    char text[OS_NOTIFY_MAX + 1];
    if (notify->fd < 0)
        return 0;
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (len < 0 || (size_t)len >= sizeof(text))
        return -EMSGSIZE;
    ssize_t sent;
    do {
        sent = sendto(notify->fd, text, (size_t)len, MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->address, notify->len);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int os_notify_reloading(const struct os_notify *notify)
{
    return os_notify_send(notify, "RELOADING=1\nMONOTONIC_USEC=%llu",
                          (unsigned long long)(os_clock_now_ns() / 1000));
}
