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

/* Zeroed: none. */
struct server_pidfile {
    char *path; /* NULL: none */
    int fd;     /* locked */
};

/* Creates the file, or takes over one whose server is gone; it keeps what it says.
 * 0 or -errno with a sentence in `why`: -EEXIST when a server that runs has it. */
MUST_USE int server_pidfile_claim(struct server_pidfile *file, const char *path, char *why,
                                  size_t size);

/* Whether `path` is this very file. */
bool server_pidfile_is(const struct server_pidfile *file, const char *path);

/* Has it say this process's number. 0 or -errno. */
MUST_USE int server_pidfile_write(const struct server_pidfile *file);

/* Removes it. */
void server_pidfile_remove(struct server_pidfile *file);

/* In a process that does not own it: forgets it. */
void server_pidfile_leave(struct server_pidfile *file);
