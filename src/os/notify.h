/* SPDX-License-Identifier: MIT
 *
 * Messages to the service manager by the sd_notify(3) protocol, without libsystemd: each message is
 * one datagram of NAME=VALUE lines. For the main process of a service. Without a service manager no
 * message is sent.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { OS_NOTIFY_MAX = 512 }; /* bytes of a message */

struct os_notify {
    int fd; /* -1: there is no service manager */
    struct sockaddr_storage address;
    socklen_t len;
    uint64_t watchdog_ns; /* the longest time between two WATCHDOG=1; 0: no watchdog */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment: they
 * are not for child processes. 0, also without a service manager. -errno: its socket cannot be used
 * (-EAFNOSUPPORT: neither a path nor an abstract name). Call it before other threads start. */
MUST_USE int os_notify_open(struct os_notify *ret_notify);
void os_notify_close(struct os_notify *notify);

/* Sends lines, such as "READY=1\nSTATUS=serving", at most OS_NOTIFY_MAX bytes. Waits at most 100 ms
 * for a busy service manager. 0 or -errno. */
int os_notify_send(const struct os_notify *notify, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* RELOADING=1, with the time that the protocol requires. */
int os_notify_reloading(const struct os_notify *notify);
