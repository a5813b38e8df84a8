/* SPDX-License-Identifier: MIT */
#include "server/report.h"

#include "config/read.h"
#include "server/generations.h"

#include <stdlib.h>

void server_report_begin(struct server_report *report)
{
    report->out = open_memstream(&report->text, &report->len);
}

void server_report_say(struct server_report *report, const char *why)
{
    if (report->out)
        fprintf(report->out, "weir: %s\n", why);
}

bool server_report_read(struct server_report *report, struct config_store *store)
{
    if (report->out)
        config_read_print_problems(store, CONFIG_PROBLEMS_SHOWN, report->out);
    return config_read_errors(store) == 0;
}

void server_report_end(struct server_report *report, bool good,
                       const struct server_generation *serving,
                       struct server_management *management, struct server_stats *stats)
{
    if (!report->out || fclose(report->out) != 0)
        report->len = 0;
    char nothing[] = "", summary[SERVER_SUMMARY_MAX];
    char *text = report->len > 0 ? report->text : nothing;
    server_generations_describe(serving, summary);
    if (management)
        server_management_reloaded(management, good, text, summary);
    server_generations_log_reload(good ? serving : NULL, text); /* joins the lines */
    server_stats_reloaded(stats, good ? NULL : text);
    free(report->text);
    *report = (struct server_report){ .out = NULL };
}

void server_report_stop(struct server_report *report, bool requested,
                        const struct server_generation *serving,
                        struct server_management *management, struct server_stats *stats)
{
    if (!report->out && requested)
        server_report_begin(report);
    if (!report->out)
        return;
    server_report_say(report, "the server is stopping");
    server_report_end(report, false, serving, management, stats);
}
