/* SPDX-License-Identifier: MIT
 *
 * The sections [path PATTERN]: their values, and the rules that are made of them (rules/rules.h).
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

/* Checks a value of a kind that only paths have. On success *ret_text is the canonical form in the
 * arena, or unchanged if the text has it already. Else ret_reason has the reason. */
MUST_USE bool config_rules_check(enum config_kind kind, struct span text,
                                 struct config_arena *arena, const char **ret_text,
                                 struct config_reason *ret_reason);

/* Appends the path of a heading to its site. NULL: the heading is wrong, which is a problem now. */
struct config_section_values *config_rules_add_path(struct config_store *store,
                                                    struct config_section_values *site,
                                                    struct span pattern,
                                                    struct config_origin origin);

/* Makes the rules of each site that has paths or `site-rules = on`, in the arena of the store. Adds
 * the problems that need a whole section or site. Call it after config_store_build. */
void config_rules_build(struct config_store *store);

/* Makes the index of rules that are final, in the arena. */
void config_rules_use_index(struct rules *rules, struct config_arena *arena);
