/* SPDX-License-Identifier: MIT
 *
 * Values as people write them on the command line of a load. Pure.
 */
#pragma once

#include "base/span.h"
#include "load/plan.h"

/* "10us", "40ms", "2s", "1m", "1h"; "0" alone has no unit. Decimals are allowed. */
MUST_USE bool load_value_duration(struct span text, uint64_t *ret_ns);

/* Digits with one point at most, above 0 or equal. */
MUST_USE bool load_value_decimal(struct span text, double *ret_value);

/* "40ms", "exp:40ms", "uniform:10ms..70ms". */
MUST_USE bool load_value_think(struct span text, struct load_think *ret_think);

/* The next element of a list with commas; false at its end. */
bool load_value_next(struct span *list, struct span *ret_element);

/* "7", "10..100:10" (from, to, by; by 1 when it is not said): of each number that there is `take`
 * is called, and may refuse it. False: it is no such thing, or was refused. */
MUST_USE bool load_value_range(struct span text, bool (*take)(void *context, uint64_t value),
                               void *context);
