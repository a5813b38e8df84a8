/* SPDX-License-Identifier: MIT
 *
 * The file that says which process serves. A lock on it, which ends with the
 * process however it ends, tells a file that was left behind from one that is
 * in force.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct server_pidfile {
    char *path;    /* NULL: none */
    int fd;        /* locked */
    bool unlocked; /* a predecessor has the lock, until it learns that this process serves */
};

/* The one in force, and that of the generation that is starting, when it is another. Zeroed:
 * none. */
struct server_pidfiles {
    struct server_pidfile now, next;
};

/* Creates the next file, or takes over one whose server is gone; it keeps what it says. A `path`
 * of NULL is none. 0 or -errno with a sentence in `why`: -EEXIST when a server that runs has it,
 * other than `predecessor` (0: none). */
MUST_USE int server_pidfile_prepare(struct server_pidfiles *files, const char *path,
                                    pid_t predecessor, char *why, size_t size);

/* The next file is in force, and says this process's number; the one before is removed. 0 or
 * -errno. */
void server_pidfile_commit(struct server_pidfiles *files, const char *path);

/* There will be no next one. */
void server_pidfile_cancel(struct server_pidfiles *files);

/* Locks what a predecessor had locked, if it has let go of it. When to try again, or `due_ns` if it
 * is earlier. */
uint64_t server_pidfile_tick(struct server_pidfiles *files, uint64_t due_ns);

/* Removes what is there, unless it is still a predecessor's. */
void server_pidfile_remove(struct server_pidfiles *files);

/* In a process that does not own them, or not any more: forgets them. */
void server_pidfile_leave(struct server_pidfiles *files);
