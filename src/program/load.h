/* SPDX-License-Identifier: MIT
 *
 * The options of `weir load` that are about its result; those of the load itself are
 * in load/option.h.
 */
#pragma once

#include "load/option.h"

/* NULL name at the end. */
extern const struct load_option program_load_outputs[];
