/* SPDX-License-Identifier: MIT */
#include "server/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_wanted(const struct config *config)
{
    for (unsigned i = 0; i < config->site_count; i++)
        if (config->sites[i].auth)
            return true;
    return false;
}

/* Each site has a list of its own, also where two name the same file. */
static int read_lists(struct server_auth *auth, const struct config *config, char why[AUTH_WHY_MAX])
{
    for (unsigned i = 0; i < config->site_count; i++) {
        if (!config->sites[i].auth)
            continue;
        auth->lists[i] = auth_file_read(config->sites[i].auth, why);
        if (!auth->lists[i])
            return -EINVAL;
    }
    return 0;
}

int server_auth_open(struct server_auth *auth, const struct config *config, char why[AUTH_WHY_MAX])
{
    *auth = (struct server_auth){ 0 };
    if (!is_wanted(config))
        return 0;
    (void)snprintf(why, AUTH_WHY_MAX, "There is not enough memory for the lists of users.");
    auth->lists = calloc(config->site_count, sizeof(struct auth_file *));
    int rc = auth->lists ? 0 : -ENOMEM;
    auth->count = auth->lists ? config->site_count : 0;
    for (unsigned i = 0; i < config->site_count && rc == 0; i++)
        if (config->sites[i].auth)
            rc = server_watch_add(&auth->watch, config->sites[i].auth);
    if (rc == 0)
        rc = read_lists(auth, config, why);
    auth->complete = rc == 0;
    return rc;
}

void server_auth_close(struct server_auth *auth)
{
    for (size_t i = 0; i < auth->count; i++)
        auth_file_free(auth->lists[i]);
    free(auth->lists);
    server_watch_close(&auth->watch);
    *auth = (struct server_auth){ 0 };
}
