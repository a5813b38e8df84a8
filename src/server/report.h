/* SPDX-License-Identifier: MIT
 *
 * The report of a reload: its problems, in lines, for the client that requested it, for the log and
 * for the statistics.
 */
#pragma once

#include "server/generation.h"
#include "server/management.h"
#include "server/stats.h"

#include <stdio.h>

struct server_report {
    FILE *out; /* takes the lines; NULL: no reload is under way */
    char *text;
    size_t len;
};

/* Begins a report. Without memory it stays empty. */
void server_report_begin(struct server_report *report);

/* Adds one line: `why`, after the name of the program. */
void server_report_say(struct server_report *report, const char *why);

/* Adds the mistakes and warnings of a configuration. Whether it can be used. */
MUST_USE bool server_report_read(struct server_report *report, struct config_store *store);

/* Ends the report of a reload, good or not, and hands it to all. It may never have begun. The
 * generation `serving` serves from now on. `management` is NULL if its clients wait for another
 * reload. */
void server_report_end(struct server_report *report, bool good,
                       const struct server_generation *serving,
                       struct server_management *management, struct server_stats *stats);

/* The server stops. Refuses the reload that is under way, or that was `requested` and has not
 * begun. */
void server_report_stop(struct server_report *report, bool requested,
                        const struct server_generation *serving,
                        struct server_management *management, struct server_stats *stats);
