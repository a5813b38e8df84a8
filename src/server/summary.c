/* SPDX-License-Identifier: MIT */
#include "server/summary.h"

#include "server/capacity.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

void server_summary_describe(const struct server_generation *g, char out[SERVER_SUMMARY_MAX])
{
    char why[MODEL_WHY_MAX + 32] = "";
    out[0] = '\0';
    if (!g)
        return;
    if (g->model_why[0])
        snprintf(why, sizeof(why), " (%s: %s)", g->config->model, g->model_why);
    snprintf(out, SERVER_SUMMARY_MAX, "model %s%s, %u worker%s x %u thread%s", g->model->name, why,
             g->workers, plural(g->workers), g->threads, plural(g->threads));
}

void server_summary_print(const struct server_generation *g, const struct server_listeners *page)
{
    char text[SERVER_SUMMARY_MAX], room[SERVER_CAPACITY_MAX];
    server_summary_describe(g, text);
    server_capacity_describe(g->config, g->model, g->workers, g->threads, room);
    (void)server_listeners_print(&g->listeners, STDERR_FILENO, "weir serves ");
    (void)server_listeners_print(page, STDERR_FILENO, "statistics: ");
    fprintf(stderr, "%s\n%s; stop with Ctrl-C\n", text, room);
}

unsigned server_summary_workers(const struct server_generation *first)
{
    unsigned count = 0;
    for (const struct server_generation *g = first; g; g = g->next)
        for (unsigned i = 0; g->slots && i < g->workers; i++)
            count += g->slots[i].pid > 0;
    return count;
}

void server_summary_log_reload(const struct server_generation *g, char *report)
{
    char text[SERVER_SUMMARY_MAX];
    server_summary_describe(g, text);
    if (g) {
        log_error(LOG_INFO, "reloaded: %s, %u site%s", text, g->config->site_count,
                  plural(g->config->site_count));
        return;
    }
    size_t len = strlen(report);
    for (size_t i = 0; i < len; i++)
        if (report[i] == '\n')
            report[i] = i + 1 < len ? '|' : '\0';
    log_error(LOG_ERROR, "reload failed, the old configuration goes on: %s",
              len > 0 ? report : "out of memory");
}
