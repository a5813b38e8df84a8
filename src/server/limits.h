/* SPDX-License-Identifier: MIT
 *
 * The limits of each client address, as the configuration sets them, and the memory that the
 * workers of one generation share for them (session/limits.h). The master never reads that memory.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"
#include "session/limits.h"

struct server_limits {
    struct session_limits limits; /* `memory` is NULL: no limit is set */
    size_t bytes;
};

/* In the master. 0 or -errno. Call server_limits_close in either case. */
MUST_USE int server_limits_open(struct server_limits *limits, const struct config *config,
                                unsigned workers);
void server_limits_close(struct server_limits *limits);

/* In a worker: begins with no connection. Returns the limits, or NULL when none is set. */
const struct session_limits *server_limits_join(struct server_limits *limits, unsigned worker);
