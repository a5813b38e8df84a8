/* SPDX-License-Identifier: MIT
 *
 * Telling the service manager how things are: the sd_notify protocol, one datagram
 * of NAME=VALUE lines for each message, without libsystemd. For the main process
 * of a service; without a manager every message is simply not sent.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { OS_NOTIFY_MAX = 512 }; /* bytes of a message */

struct os_notify {
    int fd; /* -1: nobody is to be told */
    struct sockaddr_storage address;
    socklen_t len;
    uint64_t watchdog_ns; /* WATCHDOG=1 is expected that often at least; 0: not */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them from the
 * environment, so that no child takes them for its own. 0 also when there is no
 * manager; -errno (-EAFNOSUPPORT: no path and no abstract name) when there is one
 * that cannot be told. Before other threads. */
MUST_USE int os_notify_open(struct os_notify *ret_notify);
void os_notify_close(struct os_notify *notify);

/* Sends lines, such as "READY=1\nSTATUS=serving", at most OS_NOTIFY_MAX bytes. Waits for a busy
 * manager for a tenth of a second at most. 0 or -errno. */
int os_notify_send(const struct os_notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* RELOADING=1, with the time that the protocol asks for. */
int os_notify_reloading(const struct os_notify *notify);
