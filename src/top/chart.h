/* SPDX-License-Identifier: MIT
 *
 * Charts of characters: eighths of blocks where the terminal has them, else ASCII.
 */
#pragma once

#include "top/canvas.h"

#include <stddef.h>

enum { TOP_CHART_MAX = TOP_COLUMNS_MAX };

/* One column for each value from `column` on, `height` rows up from `row`, which is the lowest.
 * NAN: nothing. The highest fills it; returns that. */
float top_chart_spark(struct top_canvas *canvas, unsigned row, unsigned column, unsigned height,
                      const float *values, size_t count, enum top_style style);

/* A bar of `part` (0 to 1) of so many columns. */
void top_chart_bar(struct top_canvas *canvas, unsigned row, unsigned column, unsigned width,
                   double part, enum top_style style);
