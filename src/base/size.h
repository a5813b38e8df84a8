/* SPDX-License-Identifier: MIT
 *
 * Sizes in bytes as people read them.
 */
#pragma once

#include <stdint.h>

enum { SIZE_TEXT_MAX = 16 }; /* bytes of the longest, with its NUL */

struct size_text {
    char text[SIZE_TEXT_MAX];
};

/* Three digits and a binary unit, four from 1000 to 1023: 0 B, 1023 B, 1.50 KiB, 16.0 EiB. */
struct size_text size_format(uint64_t bytes);
