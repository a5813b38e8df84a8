/* SPDX-License-Identifier: MIT
 *
 * Hints for lines and options that are written as for nginx, Apache, h2o, lighttpd or Caddy. Their
 * words are in hints.def. Every line with a hint is an error already, or becomes one: nothing is
 * guessed.
 */
#pragma once

#include "config/problem.h"
#include "config/setting.h"

/* Whether `text`, a line or the name in it, is in the syntax of another server, or names a setting
 * of one. Then the reason says how to write it here. */
bool config_hint_explain(struct span text, struct config_reason *ret_reason);

/* The same for an option --NAME that no command has. */
bool config_hint_explain_option(struct span name, struct config_reason *ret_reason);

/* The form of a section's heading: "[site NAME]". */
const char *config_hint_heading(enum config_section section);

/* Returns `value` without what other servers put around it: quotes, and a `;` at its end. Values
 * in which these have a meaning stay whole. */
struct span config_hint_strip(const struct config_setting *setting, struct span value);

/* Whether the value seems to end with a comment. Comments have a line of their own. */
bool config_hint_has_comment(const struct config_setting *setting, struct span value);
