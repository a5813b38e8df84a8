/* SPDX-License-Identifier: MIT
 *
 * What one server has alone: the pid file, the segment of the statistics, and the addresses of the
 * statistics page. A generation that starts claims them, and gets them when it serves. In an
 * upgrade they pass to the successor when it serves, and back if it dies before.
 */
#pragma once

#include "server/page.h"
#include "server/pidfile.h"
#include "server/stats.h"

struct server_exclusives {
    struct server_pidfiles pidfiles;
    struct server_stats stats;
    struct server_page page;
};
#define SERVER_EXCLUSIVES_NONE ((struct server_exclusives){ .page = SERVER_PAGE_NONE })

/* Prepares them for a generation that starts. It fails if another server has the pid file or an
 * address. `predecessor` (0: none) keeps what it has until this server serves. With `at_once` the
 * page can be read from now on, while the workers start. */
void server_exclusives_claim(struct server_exclusives *own, struct server_generation *g,
                             pid_t predecessor, bool at_once);

/* The generation that starts has failed. */
void server_exclusives_cancel(struct server_exclusives *own);

/* The generation serves: the pid file is written, and the page is that of its configuration. The
 * segment follows with server_stats_serving. */
void server_exclusives_commit(struct server_exclusives *own, const struct server_generation *g);

/* A successor serves, and has them. */
void server_exclusives_hand_over(struct server_exclusives *own);

/* A successor has ended before it served, and may have taken them already: takes them back for
 * `serving` (NULL: nothing serves). */
void server_exclusives_take_back(struct server_exclusives *own,
                                 const struct server_generation *serving, bool stopping);

/* Ends the page, and removes the segment and the pid file. */
void server_exclusives_end(struct server_exclusives *own);
