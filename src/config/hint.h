/* SPDX-License-Identifier: MIT
 *
 * Hints for lines that are written as for nginx, Apache, h2o, lighttpd or Caddy. Every line with a
 * hint is an error already, or becomes one: nothing is guessed.
 *
 * Private to config/.
 */
#pragma once

#include "config/problem.h"
#include "config/setting.h"

/* Whether `text`, a line or the name in it, is in the syntax of another server, or names a setting
 * of one. Then the reason says how to write it here. */
bool config_hint_explain(struct span text, struct config_reason *ret_reason);

/* Returns `value` without what other servers put around it: quotes, and a `;` at its end. Values
 * in which these have a meaning stay whole. */
struct span config_hint_strip(const struct config_setting *setting, struct span value);

/* Whether the value seems to end with a comment. Comments have a line of their own. */
bool config_hint_has_comment(const struct config_setting *setting, struct span value);
