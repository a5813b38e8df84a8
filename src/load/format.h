/* SPDX-License-Identifier: MIT
 *
 * Numbers for people: three or four digits, and a unit that fits.
 */
#pragma once

#include <stdint.h>

enum { LOAD_FORMAT_MAX = 24 };

struct load_formatted {
    char text[LOAD_FORMAT_MAX];
};

struct load_formatted load_format_time(double ns);      /* 1.23 ms */
struct load_formatted load_format_bytes(double bytes);  /* 1.23 MiB */
struct load_formatted load_format_share(double share);  /* 1.23 % */
struct load_formatted load_format_number(double value); /* 12.3, 12345 */
