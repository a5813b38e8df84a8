/* SPDX-License-Identifier: MIT
 *
 * Where control sockets are, unless a setting says otherwise: one folder for each
 * user, in it PID.sock for each master. The server and `weir reload` find each
 * other by looking in the same place.
 */
#pragma once

#include "base/check.h"

#include <sys/types.h>

/* A longer path does not fit into the address of a socket. */
enum { SERVER_RUNTIME_MAX = 108 };

/* The folder: $RUNTIME_DIRECTORY (the first, if several), else /run/weir for root,
 * else $XDG_RUNTIME_DIR/weir, else /tmp/weir-UID. 0 or -ENAMETOOLONG. */
MUST_USE int server_runtime_folder(char out[SERVER_RUNTIME_MAX]);

/* Whether what is there can be trusted: a folder, ours, that others cannot write
 * to, and below /tmp not a link. 0 or -errno: -ENOENT there is none, -EPERM it is
 * not to be trusted. */
MUST_USE int server_runtime_check(const char *folder);

/* Makes the folder if it is missing, and checks it. 0 or -errno. */
MUST_USE int server_runtime_make(const char *folder);

/* The path of a master's socket. 0 or -ENAMETOOLONG. */
MUST_USE int server_runtime_socket(const char *folder, pid_t pid, char out[SERVER_RUNTIME_MAX]);

/* Goes through the masters that have a socket there: the pids of at most `most` in
 * `ret_pids`. Sockets that nobody listens on are removed. Returns how many there
 * are, or -errno. */
int server_runtime_list(const char *folder, pid_t *ret_pids, int most);
