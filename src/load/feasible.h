/* SPDX-License-Identifier: MIT
 *
 * Whether this machine, now, can make a load at all: what no look at the words can tell.
 */
#pragma once

#include "load/value.h"

MUST_USE bool load_feasible(const struct load_plan *plan, struct load_refusal *refusal);
