/* SPDX-License-Identifier: MIT
 *
 * The rules that come with a site: the files `_headers` and `_redirects` in its root, in the format
 * that Netlify and Cloudflare Pages read. They become rules of rules/, together with those of
 * weir.conf.
 *
 *   [site]'s own fields, then `_headers`, then the sections [path]: later ones win
 *   a section with an action decides before `_redirects`
 *
 * A line that cannot be used becomes a warning, and changes nothing else. This module opens no
 * file.
 */
#pragma once

#include "config/config.h"
#include "config/problem.h"

enum {
    CONFIG_SITEFILE_BYTES_MAX = 256 * 1024, /* of a file */
    CONFIG_SITEFILE_LINE_MAX = 2000,        /* bytes of a line */
    CONFIG_SITEFILE_BLOCKS_MAX = 100,       /* paths with fields in `_headers` */
    CONFIG_SITEFILE_REDIRECTS_MAX = 2100,
    CONFIG_SITEFILE_SHOWN = 50 /* warnings with a text; further ones are only counted */
};

struct config_sitefile {
    const char *path; /* for messages */
    struct span text; /* empty: there is no such file */
};

/* The rules of `site`, which has `site-rules = on`, with those of its files. They are in the arena,
 * and borrow the configuration. Adds the warnings to `problems`. `text` is free afterwards, and
 * `path` is borrowed. */
const struct rules *config_sitefile_rules(const struct config_site *site,
                                          const struct config_sitefile *headers,
                                          const struct config_sitefile *redirects,
                                          struct config_arena *arena,
                                          struct config_problems *problems);
