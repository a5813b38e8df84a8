/* SPDX-License-Identifier: MIT
 *
 * Fields that the operator adds to answers, as texts of settings. A field that weir itself controls
 * is refused, and so is every byte that could end the line.
 *
 * Private to config/.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"

/* `Name: value`. On success *ret_line is the line in the arena, with one space behind the colon. */
MUST_USE bool config_field_check(struct span text, struct config_arena *arena,
                                 const char **ret_line, struct config_reason *ret_reason);

/* `Name: value`, or `-Name`, which removes a field. For the second *ret_line is unchanged. */
MUST_USE bool config_field_check_rule(struct span text, struct config_arena *arena,
                                      const char **ret_line, struct config_reason *ret_reason);

/* The name of a field, or `*`. */
MUST_USE bool config_field_check_name(struct span text, struct config_reason *ret_reason);

/* The value of Cache-Control (RFC 9111 section 5.2). A directive that is nearly a known one is
 * refused; other unknown directives are extensions. */
MUST_USE bool config_field_check_cache(struct span text, struct config_reason *ret_reason);
