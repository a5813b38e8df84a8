/* SPDX-License-Identifier: MIT
 *
 * The files `_headers` and `_redirects` of the sites with `site-rules = on`. The master reads them
 * before the workers are forked, and then watches them. Workers inherit the rules, and open no file
 * for them (decision 041). A change starts another generation, whose caches are empty. So no head
 * of old rules is left.
 *
 * A file is opened beneath the root of its site. So a link in a site leads the master to no other
 * file. What the lines mean is in config/sitefile.h.
 */
#pragma once

#include "config/config.h"
#include "config/problem.h"
#include "server/watch.h"

struct server_sitefiles {
    struct config copy;           /* the configuration with the rules of the files */
    struct config_site *sites;    /* of `copy`; NULL: no site reads files */
    struct config_arena arena;    /* the rules, the names of the files and the warnings */
    struct config_problems lines; /* warnings: lines, and files, that cannot be used */
    struct server_watch watch;
};

/* Reads the files. If there are any to read, *config becomes one with their rules, which is valid
 * until server_sitefiles_close. It borrows the former *config. A wrong line is a warning. 0, or
 * -ENOMEM with a one-line reason in `why`. Call server_sitefiles_close in any case. */
enum { SERVER_SITEFILES_WHY_MAX = 128 };
MUST_USE int server_sitefiles_open(struct server_sitefiles *files, const struct config **config,
                                   char why[SERVER_SITEFILES_WHY_MAX]);
void server_sitefiles_close(struct server_sitefiles *files);

/* Writes the warnings to the error log. */
void server_sitefiles_log(const struct server_sitefiles *files);
