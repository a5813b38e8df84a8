/* SPDX-License-Identifier: MIT */
#include "server/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *server_auth_path(const struct config_site *site, unsigned path)
{
    const char *file = path < site->path_count ? site->paths[path].path_auth : site->auth;
    return file && (path == site->path_count || strcmp(file, "off") != 0) ? file : NULL;
}

static bool find_list(const struct server_auth *auth, const char *path, unsigned *ret_number)
{
    for (unsigned i = 0; i < auth->count; i++) {
        const char *known = auth->lists[i].path;
        if (known && strcmp(known, path) == 0) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

unsigned server_auth_find(const struct server_auth *auth, const char *path)
{
    unsigned number = 0;
    CHECK(find_list(auth, path, &number));
    return number;
}

/* The most lists that a configuration can have. */
static size_t count_users(const struct config *config)
{
    size_t count = 0;
    for (unsigned i = 0; i < config->site_count; i++)
        for (unsigned path = 0; path <= config->sites[i].path_count; path++)
            count += server_auth_path(&config->sites[i], path) != NULL;
    return count;
}

/* Notes each file once. */
static int add_lists(struct server_auth *auth, const struct config *config)
{
    unsigned number;
    for (unsigned i = 0; i < config->site_count; i++)
        for (unsigned path = 0; path <= config->sites[i].path_count; path++) {
            const char *file = server_auth_path(&config->sites[i], path);
            if (!file || find_list(auth, file, &number))
                continue;
            auth->lists[auth->count++].path = file;
            const int rc = server_watch_add(&auth->watch, file);
            if (rc < 0)
                return rc;
        }
    return 0;
}

int server_auth_open(struct server_auth *auth, const struct config *config, char why[AUTH_WHY_MAX])
{
    *auth = (struct server_auth){ 0 };
    const size_t most = count_users(config);
    if (most == 0)
        return 0;
    (void)snprintf(why, AUTH_WHY_MAX, "There is not enough memory for the lists of users.");
    auth->lists = calloc(most, sizeof(*auth->lists));
    int rc = auth->lists ? add_lists(auth, config) : -ENOMEM;
    for (unsigned i = 0; i < auth->count && rc == 0; i++) {
        auth->lists[i].users = auth_file_read(auth->lists[i].path, why);
        rc = auth->lists[i].users ? 0 : -EINVAL;
    }
    auth->complete = rc == 0;
    return rc;
}

void server_auth_close(struct server_auth *auth)
{
    for (unsigned i = 0; i < auth->count; i++)
        auth_file_free(auth->lists[i].users);
    free(auth->lists);
    server_watch_close(&auth->watch);
    *auth = (struct server_auth){ 0 };
}
