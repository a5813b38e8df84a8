/* SPDX-License-Identifier: MIT
 *
 * The runtime folder: where control sockets are, unless a setting names a path. Each user has one
 * folder, with PID.sock for each master. The server and `weir reload` find each other because both
 * look in the same place.
 */
#pragma once

#include "base/check.h"

#include <sys/types.h>

/* The longest path that fits into the address of a Unix socket, with its NUL. */
enum { SERVER_RUNTIME_MAX = 108 };

/* The folder: $RUNTIME_DIRECTORY (the first one, if several), else /run/weir for root,
 * else $XDG_RUNTIME_DIR/weir, else /tmp/weir-UID. 0 or -ENAMETOOLONG. */
MUST_USE int server_runtime_folder(char out[SERVER_RUNTIME_MAX]);

/* Whether the folder can be trusted: it belongs to this user, or this user is root; no other user
 * can write to it; below /tmp it is not a link. 0 or -errno. -ENOENT: there is none. -EPERM: it
 * cannot be trusted. */
MUST_USE int server_runtime_check(const char *folder);

/* What -EPERM of these functions means, for people. */
#define SERVER_RUNTIME_DISTRUSTED "others than you can write to it or own it, so it is not trusted"

/* Makes the folder if it is missing, and checks it. 0 or -errno. */
MUST_USE int server_runtime_make(const char *folder);

/* The path of a master's socket. 0 or -ENAMETOOLONG. */
MUST_USE int server_runtime_socket(const char *folder, pid_t pid, char out[SERVER_RUNTIME_MAX]);

/* Lists the masters that listen in the folder: at most `most` process ids in `ret_pids`. Removes
 * the sockets that no process listens on. Returns the number of masters, or -errno. */
int server_runtime_list(const char *folder, pid_t *ret_pids, int most);
