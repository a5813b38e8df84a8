/* SPDX-License-Identifier: MIT
 *
 * The settings `cors` of a path: which origins may read its answers (Fetch standard, CORS
 * protocol). They become fields of its rule, and for several origins a list that sessions
 * search.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

struct rules_field;
struct rules_rule;

/* An origin as browsers send it: scheme, host, and a port unless it is that of the scheme. Or `*`,
 * or `none`. */
MUST_USE bool config_cors_check_origin(struct span text, struct config_arena *arena,
                                       const char **ret_text, struct config_reason *ret_reason);

/* The most fields that config_cors_make adds. */
enum { CONFIG_CORS_FIELDS = 3 };

/* Sets what the rule has of CORS, and appends its fields to `fields` and rule->field_count. Adds
 * the problems that need the whole section. */
void config_cors_make(struct config_store *store, const struct config_section_values *values,
                      const struct config_path *path, struct rules_rule *rule,
                      struct rules_field *fields);
