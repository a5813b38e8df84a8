/* SPDX-License-Identifier: MIT
 *
 * Figures for people: three or four digits, and a unit that fits.
 */
#pragma once

#include <stdint.h>

enum { LOAD_FIGURE_MAX = 24 };

struct load_figure {
    char text[LOAD_FIGURE_MAX];
};

struct load_figure load_figure_time(double ns);      /* 1.23 ms */
struct load_figure load_figure_bytes(double bytes);  /* 1.23 MiB */
struct load_figure load_figure_share(double share);  /* 1.23 % */
struct load_figure load_figure_number(double value); /* 12.3, 12345 */
