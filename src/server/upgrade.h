/* SPDX-License-Identifier: MIT
 *
 * The upgrade replaces the binary without refusing a connection. The master starts its own file
 * again and hands over every listening socket (server/inherited.h). The old master serves until the
 * new one, the successor, reports that it is ready; then the old one drains and ends. If the
 * successor fails in any way, the old master continues as before.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server_upgrade {
    char *file;         /* the program that is started */
    char **arguments;   /* NULL at the end */
    char **environment; /* as it was when this process started */
    pid_t pid;          /* of the successor; 0: none, or it has ended */
    pid_t killed;       /* a successor that was killed, and not reaped yet; 0: none */
    pid_t ending;       /* a successor that was asked to end, and not reaped yet; 0: none */
    bool late;          /* `killed` was not ready in time */
    int ready_fd;       /* read end; -1: none */
    bool has_data;      /* bytes have come through ready_fd */
    uint64_t limit_ns;  /* when the successor has failed if it is not ready */
};

enum { SERVER_UPGRADE_LIMIT_MS = 60000, SERVER_UPGRADE_END_MS = 5000 };

/* A descriptor to hand over, and its name in server/inherited.h. */
struct server_upgrade_descriptor {
    int fd;
    const char *name;
};

/* Stores file, arguments and environment of this process. Call it before the environment changes.
 * 0 or -errno, after which an upgrade is refused. Call server_upgrade_done at the end. */
MUST_USE int server_upgrade_remember(struct server_upgrade *ret_upgrade);
void server_upgrade_done(struct server_upgrade *upgrade);

/* Starts the successor with these descriptors, borrowed, and tells it whether it runs
 * `beside_stuck` workers (struct server_inherited). 0 or -errno; -EALREADY: one is starting.
 * -EBUSY: one was killed because it was late, and has not ended. This process must have one
 * thread. */
MUST_USE int server_upgrade_begin(struct server_upgrade *upgrade,
                                  const struct server_upgrade_descriptor *descriptors, size_t count,
                                  bool beside_stuck);

enum server_upgrade_state {
    SERVER_UPGRADE_NONE,    /* no successor is starting */
    SERVER_UPGRADE_PENDING, /* it is starting */
    SERVER_UPGRADE_READY,   /* it serves, as process `pid` */
    SERVER_UPGRADE_FAILED   /* it has failed, and is killed if it has not ended; NONE from now on */
};

/* The state of the upgrade. Call it when ready_fd is readable, and when limit_ns has passed. READY
 * and FAILED are returned once. */
enum server_upgrade_state server_upgrade_check(struct server_upgrade *upgrade, uint64_t now_ns);

/* A child process has ended and was reaped. Returns whether it was a successor. Its process id is
 * no longer used, and the next check fails unless the successor served before. */
bool server_upgrade_reaped(struct server_upgrade *upgrade, pid_t pid);

/* Asks a successor that is starting, if there is one, to end at once. So it removes the files that
 * it has made: a pid file, sockets. The caller reaps it, or calls server_upgrade_end at its own
 * end. */
void server_upgrade_abandon(struct server_upgrade *upgrade);

/* Waits for a successor that was abandoned, but not longer than `patience_ms`. Then kills it. */
void server_upgrade_end(struct server_upgrade *upgrade, unsigned patience_ms);
