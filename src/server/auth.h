/* SPDX-License-Identifier: MIT
 *
 * The lists of users of one configuration (the setting `auth`), as the master makes them. It reads
 * the files before the workers are forked, while the process may read them, and then watches them.
 * Workers inherit the lists and open no file for them (decision 037).
 */
#pragma once

#include "auth/file.h"
#include "config/config.h"
#include "server/watch.h"

/* The list of a file. Sites and paths that name the same file share it. */
struct server_auth_list {
    const char *path; /* borrowed from the configuration */
    struct auth_file *users;
};

/* Zeroed: nothing needs a password. */
struct server_auth {
    struct server_auth_list *lists;
    unsigned count; /* of `lists`; 0: nothing needs a password */
    bool complete;  /* all lists were read */
    struct server_watch watch;
};

/* Reads the lists. Borrows the configuration until server_auth_close. 0, or -errno with a one-line
 * reason in `why`. Call server_auth_close in any case. */
MUST_USE int server_auth_open(struct server_auth *auth, const struct config *config,
                              char why[AUTH_WHY_MAX]);
void server_auth_close(struct server_auth *auth);

/* The file of users of path number `path` of a site; `path_count` stands for the site itself.
 * NULL: it has none of its own, or needs no password. */
const char *server_auth_path(const struct config_site *site, unsigned path);

/* The number of the list that is read from `path`. There is one. */
unsigned server_auth_find(const struct server_auth *auth, const char *path);
