/* SPDX-License-Identifier: MIT
 *
 * The lines of `_redirects`: PATH [TARGET] [STATUS[!]]. Each becomes a rule with an action.
 *
 * Private to config/.
 */
#pragma once

#include "config/siteline.h"
#include "rules/rules.h"

/* Reads all lines. Returns how many rules there are in `list`, which has space for `most`. */
unsigned config_siteredirect_read(struct config_siteline_reader *r, struct rules_rule *list,
                                  unsigned most);
