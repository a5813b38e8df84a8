/* SPDX-License-Identifier: MIT
 *
 * The rules of a path in words, for `weir trace` and `weir check --explain`.
 */
#pragma once

#include "base/buf.h"
#include "config/config.h"
#include "rules/rules.h"

/* Appends where a rule stands, its pattern, and what it does:
 * "weir.conf:8: [path /map.html]; removes X-Frame-Options". The rule without an origin is the
 * site's own. */
void trace_rule_describe(const struct config_site *site, const struct rules_rule *rule,
                         struct buf *text);

/* Appends the place and the pattern alone. */
void trace_rule_add_place(const struct config_site *site, const struct rules_rule *rule,
                          struct span separator, struct buf *text);

/* The file of users of a rule that needs a password. */
const char *trace_rule_users(const struct config_site *site, const struct rules_rule *rule);
