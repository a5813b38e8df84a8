/* SPDX-License-Identifier: MIT
 *
 * Replacing the binary without refusing a connection: the master starts the file
 * that it was started from once more and passes every listening socket on
 * (server/inherited.h). The old and the new master then serve side by side, until
 * the new one says that it is ready; the old one drains and ends. If the new one
 * fails in any way, the old one goes on as if nothing had been.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server_upgrade {
    char *file;         /* what is started */
    char **arguments;   /* NULL at the end */
    char **environment; /* as it was at the start */
    pid_t pid;          /* of the successor; 0: none is under way */
    int ready_fd;       /* read end; -1: none */
    bool said;          /* something came through it */
    uint64_t limit_ns;  /* when it has taken too long */
};

enum { SERVER_UPGRADE_LIMIT_MS = 60000 };

/* A descriptor to pass on, and its name in server/inherited.h. */
struct server_upgrade_descriptor {
    int fd;
    const char *name;
};

/* Remembers file, arguments and environment of this process. Before anything changes the
 * environment. 0 or -errno, after which an upgrade is refused. End with server_upgrade_done. */
MUST_USE int server_upgrade_remember(struct server_upgrade *ret_upgrade);
void server_upgrade_done(struct server_upgrade *upgrade);

/* Starts the successor with these descriptors, borrowed. 0 or -errno; -EALREADY:
 * one is under way. Only where this process has one thread. */
MUST_USE int server_upgrade_begin(struct server_upgrade *upgrade,
                                  const struct server_upgrade_descriptor *descriptors,
                                  size_t count);

enum server_upgrade_state {
    SERVER_UPGRADE_NONE,    /* nothing is under way */
    SERVER_UPGRADE_PENDING, /* it has not said anything yet */
    SERVER_UPGRADE_READY,   /* it serves; `pid` says who */
    SERVER_UPGRADE_FAILED   /* it does not, and is gone; as NONE from now on */
};

/* How it stands: to be called when ready_fd can be read, and when limit_ns has passed. READY and
 * FAILED are told once. */
enum server_upgrade_state server_upgrade_look(struct server_upgrade *upgrade, uint64_t now_ns);

/* Ends a successor that is starting, and sees it off. */
void server_upgrade_abandon(struct server_upgrade *upgrade);
