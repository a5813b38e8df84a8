/* SPDX-License-Identifier: MIT
 *
 * Header lines that a site adds to its answers. A line that could end the head
 * early, or contradict what the server says itself, never gets in.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/reason.h"

/* `Name: value`, the name a token (RFC 9110 section 5.6.2), the value without
 * control bytes (section 5.5). On success *ret_line is "Name: value", with one
 * space, in the arena. */
MUST_USE bool config_field_check(struct span text, struct config_arena *arena,
                                 const char **ret_line, struct config_reason *ret_reason);
