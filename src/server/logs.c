/* SPDX-License-Identifier: MIT */
#include "server/logs.h"

#include <signal.h>
#include <string.h>

void server_logs_reopen(struct server_generation *first, const struct server_page *page)
{
    if (log_error_reopen() < 0)
        log_error(LOG_ERROR, "cannot reopen the error log; the old file is kept");
    for (struct server_generation *g = first; g; g = g->next) {
        int rc = log_access_reopen(&g->access_log);
        if (rc < 0)
            log_error(LOG_ERROR, "cannot reopen the access log: %s", strerror(-rc));
        server_generation_signal(g, SIGUSR1);
    }
    server_page_reopen(page);
}
