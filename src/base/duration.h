/* SPDX-License-Identifier: MIT
 *
 * Durations: their units in nanoseconds, and as text that people write and read.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* In nanoseconds. */
#define DURATION_US     UINT64_C(1000)
#define DURATION_MS     UINT64_C(1000000)
#define DURATION_SECOND UINT64_C(1000000000)

enum { DURATION_MAX = 16 }; /* bytes of the longest, with its NUL */

struct duration_text {
    char text[DURATION_MAX];
};

/* Three digits and a unit: 0.00 us, 12.3 us, 1.00 ms, 45.6 s, 3600 s. */
struct duration_text duration_format(uint64_t ns);

/* Reads a decimal number with a unit (us, ms, s, m, h, in either case): 500ms, 1.5s, 2m. A bare 0
 * needs no unit. Returns false for anything else, for 585 years or more, and for less than 1 ns
 * that is not 0. */
bool duration_parse(struct span text, uint64_t *ret_ns);
