/* SPDX-License-Identifier: MIT
 *
 * The resources of a worker: the sites of a configuration, opened, with their cache and hosts. A
 * worker process serves with them; `weir trace` answers one request with the same.
 */
#pragma once

#include "config/config.h"
#include "log/access.h"
#include "peer/address.h"
#include "server/auth.h"
#include "server/capacity.h"
#include "server/tls.h"
#include "session/access.h"
#include "session/forwarded.h"
#include "session/tally.h"
#include "session/thread.h"

#include <pthread.h>

struct site_mime;
struct site_options;

struct server_resources {
    struct session_shared shared;
    struct session_totals totals;
    struct site_mime *mime;      /* of the sites without types of their own */
    struct site_mime **own_mime; /* of each site; NULL: it has no types of its own */
    struct session_site *sites;
    struct site_options *options;
    struct site_allocator *allocator; /* of what the cache holds */
    unsigned site_count;              /* elements of the two arrays */
    struct peer_networks proxies;     /* of the setting proxy-protocol */
    struct session_forwarding forwarding;
    pthread_t compressing; /* the thread of shared.compressor, once it has started */
    bool compresses;       /* it has */
    struct session_guard guard;
    struct session_access *access; /* of the sites and their paths; NULL: none needs a password */
    char (*challenges)[SESSION_CHALLENGE_MAX];
};

/* Opens the sites of `config`, for `readers` threads of a process with this capacity. `config`, the
 * log and the segment (NULL: nothing is counted) are borrowed until the close. 0 or -errno,
 * reported in the error log. Call server_resources_close in any case. */
MUST_USE int server_resources_open(struct server_resources *resources, const struct config *config,
                                   const struct server_capacity *capacity, unsigned readers,
                                   struct log_access_sink *access_log,
                                   const struct stats_segment *stats);
void server_resources_close(struct server_resources *resources);

/* Has sessions use `tls` (NULL: none), which is borrowed until the close, and sites redirect plain
 * requests to `port` if `config` says so. */
void server_resources_use_tls(struct server_resources *resources, const struct config *config,
                              const struct server_tls *tls, uint16_t port);

/* Has the sites and paths that need a password use their lists in `auth`, which is borrowed until
 * the close. 0 or -errno, reported in the error log. */
MUST_USE int server_resources_use_auth(struct server_resources *resources,
                                       const struct config *config, const struct server_auth *auth);

/* Logs a warning for each site whose folder this process cannot read. Call it after the change of
 * user. The folders may have been opened before the change. So a site below a closed folder, such
 * as /root, can be served. */
void server_resources_warn_of_rights(const struct server_resources *resources,
                                     const struct config *config);

/* The user that the workers and the statistics page become, for the setting `user`. If the setting
 * is NULL and this process is root: `weir` if there is such a user, else `nobody`. NULL: no change,
 * because this process is not root, or may not change its user. */
const char *server_resources_user(const char *setting);

/* Changes to that user. 0 or -errno, reported in the error log. */
MUST_USE int server_resources_become(const char *setting);
