/* SPDX-License-Identifier: MIT
 *
 * Whether runs are parts of one: a number that is the same for all that ask the same of
 * the same server, whatever share of it they have, and from which machine.
 */
#pragma once

#include "load/plan.h"

uint64_t load_kin(const struct load_plan *plan);
