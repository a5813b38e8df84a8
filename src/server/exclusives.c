/* SPDX-License-Identifier: MIT */
#include "server/exclusives.h"

#include "server/generation.h"

void server_exclusives_claim(struct server_exclusives *own, struct server_generation *g,
                             pid_t predecessor, bool at_once)
{
    char why[LOG_ERROR_LINE_MAX];
    if (!g->failed &&
        server_pidfile_prepare(&own->pidfiles, g->store, predecessor, why, sizeof(why)) < 0)
        server_generation_fail(g, why);
    server_stats_use(&own->stats, g->config, predecessor);
    if (!g->failed && server_page_prepare(&own->page, &own->stats, g, why, sizeof(why)) < 0)
        server_generation_fail(g, why);
    if (at_once)
        server_page_commit(&own->page);
}

void server_exclusives_cancel(struct server_exclusives *own)
{
    server_pidfile_cancel(&own->pidfiles);
    server_page_cancel(&own->page);
}

void server_exclusives_commit(struct server_exclusives *own, const struct server_generation *g)
{
    server_pidfile_commit(&own->pidfiles, g->config->pid_file);
    server_page_commit(&own->page);
}

void server_exclusives_hand_over(struct server_exclusives *own)
{
    server_page_hand_over(&own->page);
    server_pidfile_yield(&own->pidfiles);
}

void server_exclusives_take_back(struct server_exclusives *own,
                                 const struct server_generation *serving, bool stopping)
{
    server_pidfile_take_back(&own->pidfiles);
    server_stats_take_back(&own->stats, serving, &own->page.now.listeners, stopping);
}

void server_exclusives_end(struct server_exclusives *own)
{
    server_page_end(&own->page);
    server_stats_end(&own->stats);
    server_pidfile_remove(&own->pidfiles);
}
