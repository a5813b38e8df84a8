/* SPDX-License-Identifier: MIT
 *
 * The values of the options of a load, as written on the command line. Pure.
 */
#pragma once

#include "base/span.h"
#include "load/plan.h"

/* "10us", "40ms", "2s", "1m", "1h"; "0" alone has no unit. Decimals are allowed. */
MUST_USE bool load_value_duration(struct span text, uint64_t *ret_ns);

/* Digits with at most one decimal point, no sign. */
MUST_USE bool load_value_decimal(struct span text, double *ret_value);

/* "40ms", "exp:40ms", "uniform:10ms..70ms". */
MUST_USE bool load_value_think(struct span text, struct load_think *ret_think);

/* The next element of a list with commas; false at its end. */
bool load_value_next(struct span *list, struct span *ret_element);

/* "7", or "10..100:10" (from, to, step; the step is 1 without one). Calls `take` for each number.
 * false: the text is neither, or `take` has refused a number. */
MUST_USE bool load_value_range(struct span text, bool (*take)(void *context, uint64_t value),
                               void *context);
