/* SPDX-License-Identifier: MIT
 *
 * The headings of weir.conf: [server], [site NAME] and [path PATTERN]. A heading says to which
 * section the settings below it belong. Below a wrong heading the settings go to a section that is
 * not in force, so that their errors are reported, too.
 */
#pragma once

#include "config/store.h"

struct config_heading {
    struct config_store *store;
    const char *path;                      /* of the file */
    struct config_section_values *section; /* NULL: before any, or below an unknown heading */
    struct config_section_values *site;    /* the last site, or NULL */
    bool site_is_unknown;                  /* `site` is NULL below an unknown heading */
    unsigned server_line;                  /* of [server]; 0: not yet */
    bool any_section;
};

/* Reads what stands between the brackets, and sets `section`. */
void config_heading_read(struct config_heading *heading, struct span text, unsigned line);
