/* SPDX-License-Identifier: MIT
 *
 * The listening sockets of a server, opened once by the master and inherited by
 * every worker process, so that a worker's death leaves what waits in them.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>

struct server_listeners {
    size_t count; /* addresses */
    size_t sets;  /* of sockets, one for each accepting thread of each worker */
    int *fd;      /* sets x count, set after set; -1: this set has none for the address */
    char **url;   /* count; NULL: the address was passed over */
};

/* Opens every address of `listen` (NULL-terminated) for `workers` processes of
 * `threads` accepting threads. With `by_default` nobody asked for these very
 * addresses, and those the machine does not have are passed over, except the
 * last that is left. Failures are told in the error log with cause and
 * cure. 0 or -errno; on failure nothing stays open. */
MUST_USE int server_listeners_open(struct server_listeners *listeners, const char *const *listen,
                                   size_t workers, size_t threads, const char *congestion,
                                   bool by_default);

/* Closes the sockets of every worker but `worker`, which has `threads` sets. */
void server_listeners_keep(struct server_listeners *listeners, size_t worker, size_t threads);

/* Closes the sockets; `unlink_files` removes Unix socket files too. Idempotent. */
void server_listeners_close(struct server_listeners *listeners, bool unlink_files);

/* Frees what is left. Accepts a zeroed struct. */
void server_listeners_free(struct server_listeners *listeners);
