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

/* Zeroed: no site needs a password. */
struct server_auth {
    struct auth_file **lists; /* by the number of the site; NULL: that site needs no password */
    size_t count;             /* of `lists`; 0: no site needs one */
    bool complete;            /* all lists were read */
    struct server_watch watch;
};

/* Reads the lists. Borrows the configuration until server_auth_close. 0, or -errno with a one-line
 * reason in `why`. Call server_auth_close in any case. */
MUST_USE int server_auth_open(struct server_auth *auth, const struct config *config,
                              char why[AUTH_WHY_MAX]);
void server_auth_close(struct server_auth *auth);
