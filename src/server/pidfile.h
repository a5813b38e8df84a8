/* SPDX-License-Identifier: MIT
 *
 * The pid file: it holds the process id of the master. The master locks it. The kernel releases
 * the lock when the process ends, however it ends, so the lock shows whether the file is stale.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config_store;

struct server_pidfile {
    char *path;    /* NULL: none */
    int fd;        /* locked */
    bool unlocked; /* the predecessor still holds the lock; server_pidfile_tick takes it later */
};

/* The file in use, and the file of the generation that is starting, if that names another one.
 * Zeroed: none. */
struct server_pidfiles {
    struct server_pidfile now, next;
};

/* Opens and locks the file that `store` names, if any, and creates it if it is missing. Its content
 * stays until server_pidfile_commit. A file with other contents than a process id is refused. 0, or
 * -errno with a sentence in `why`. -EEXIST: a server that runs holds the lock, and it is not
 * `predecessor` (0: none). */
MUST_USE int server_pidfile_prepare(struct server_pidfiles *files, const struct config_store *store,
                                    pid_t predecessor, char *why, size_t size);

/* Why what stands under the path now cannot be the pid file: a sentence with the cure, or NULL. It
 * writes nothing. */
const char *server_pidfile_refusal(const char *path);

/* The generation that names `path` serves: its file becomes the one in use and gets this process's
 * id, and an earlier file is removed. A write error is logged. */
void server_pidfile_commit(struct server_pidfiles *files, const char *path);

/* The generation that is starting has failed: removes its file. */
void server_pidfile_cancel(struct server_pidfiles *files);

/* Locks a file that a predecessor held locked, once it is free. Returns the time of the next try,
 * or `due_ns` if that is earlier. */
uint64_t server_pidfile_tick(struct server_pidfiles *files, uint64_t due_ns);

/* A successor has died before it served. It may have written its own id: writes this process's. */
void server_pidfile_take_back(struct server_pidfiles *files);

/* Removes the files, except one that a predecessor still holds locked. */
void server_pidfile_remove(struct server_pidfiles *files);

/* A successor serves. Its configuration may name another file: then this process's is removed. */
void server_pidfile_yield(struct server_pidfiles *files);

/* In a process that does not own the files (a worker, or a master that handed over): closes them
 * and leaves them on the disk. */
void server_pidfile_leave(struct server_pidfiles *files);
