/* SPDX-License-Identifier: MIT
 *
 * The settings of the access log's lines.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

/* Checks a value of kind CONFIG_FORMAT: combined, json, or a text with variables. On success
 * *ret_text is unchanged. */
MUST_USE bool config_log_check_format(struct span text, struct config_reason *ret_reason);

/* Checks and reads a value of kind CONFIG_SAMPLE, at most `most`: 10 or 1/10. */
MUST_USE bool config_log_check_sample(struct span text, uint64_t most,
                                      struct config_reason *ret_reason);
MUST_USE bool config_log_read_sample(struct span text, uint64_t *ret_value);

/* Checks the settings together. */
void config_log_verify(struct config_store *store);
