/* SPDX-License-Identifier: MIT
 *
 * The setting `dictionary` of a section [path PATTERN]: the line that has browsers keep the files
 * of the section as compression dictionaries (RFC 9842 section 2.1).
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"
#include "rules/rules.h"

/* Writes rule->dictionary_line for a section in which the setting is on. Reports a pattern that
 * browsers read in another way, and settings of the rule that keep its files out. Those are read
 * before. */
void config_dictionary_make(struct config_store *store, const struct config_section_values *values,
                            const char *pattern, struct rules_rule *rule);
