/* SPDX-License-Identifier: MIT
 *
 * The paths of a line in `_headers` and `_redirects`, as Netlify and Cloudflare Pages write them.
 * A segment `:name` covers one segment, and a single `*` any bytes. In a target, `:name` stands
 * for what the placeholder covers, and `:splat` for what the `*` covers. Both become patterns and
 * targets of rules/.
 *
 * Private to config/.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"
#include "rules/target.h"

struct config_sitepath {
    struct rules_pattern pattern;
    struct span name[RULES_STARS_MAX]; /* of the placeholder that became this star; empty: none */
};

/* Reads the path of a line. Its pattern is in the arena; the names borrow `text`. On failure
 * ret_reason has a sentence. */
MUST_USE bool config_sitepath_read(struct span text, struct config_arena *arena,
                                   struct config_sitepath *ret_path,
                                   struct config_reason *ret_reason);

/* Reads the target of a redirect, or of a rewrite, of a line with this path. */
MUST_USE bool config_sitepath_read_target(const struct config_sitepath *path, struct span text,
                                          bool rewrite, struct config_arena *arena,
                                          struct rules_target *ret_target,
                                          struct config_reason *ret_reason);

/* The first placeholder of the path in `text`, with its colon, or an empty span. */
struct span config_sitepath_find(const struct config_sitepath *path, struct span text);
