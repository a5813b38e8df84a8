/* SPDX-License-Identifier: MIT
 *
 * The limits of a section [path PATTERN]: `address-request-rate` and `address-request-burst`.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"
#include "rules/rules.h"

/* Checks a value of kind CONFIG_RATE, at most `most` per second: 5, 5/s, 30/m or 100/h. */
MUST_USE bool config_rate_check(struct span text, uint64_t most, struct config_reason *ret_reason);

/* Reads it, in requests per hour. */
MUST_USE bool config_rate_read(struct span text, uint64_t *ret_value);

/* Sets rule->rate, and reports what has no effect. */
void config_rate_make(struct config_store *store, const struct config_section_values *values,
                      const struct config_path *path, struct rules_rule *rule);
