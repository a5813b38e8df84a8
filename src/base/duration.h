/* SPDX-License-Identifier: MIT
 *
 * A duration as people read it: three figures, and the unit that fits.
 */
#pragma once

#include <stdint.h>

enum { DURATION_MAX = 16 }; /* bytes of the longest, with its NUL */

struct duration_text {
    char text[DURATION_MAX];
};

/* 0.00 us, 12.3 us, 1.00 ms, 45.6 s, 3600 s. */
struct duration_text duration_format(uint64_t ns);
