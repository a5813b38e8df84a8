/* SPDX-License-Identifier: MIT
 *
 * Whether this machine has what a plan needs: its source addresses, the server's process, and a
 * start time that is not over. These questions need system calls, so parsing cannot answer them.
 */
#pragma once

#include "load/plan.h"
#include "option/option.h"

MUST_USE bool load_resources_check(const struct load_plan *plan, struct option_refusal *refusal);
