/* SPDX-License-Identifier: MIT
 *
 * A picture of the terminal in memory: cells of a character and a style. Screens are drawn
 * on it, and terminal.h brings what has changed to the real one. Whatever is drawn
 * beyond its edges is not there, so that no screen need ask how large it is to be safe.
 *
 * A cell holds what a terminal shows and never what it obeys: controls, and what the locale
 * cannot write, become `?`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum top_style {
    TOP_PLAIN,
    TOP_DIM,
    TOP_BOLD,
    TOP_TITLE,    /* the first line */
    TOP_SELECTED, /* a line that is chosen */
    TOP_ACCENT,   /* charts */
    TOP_GOOD,
    TOP_NOTICE,
    TOP_BAD,
    TOP_STYLES
};

struct top_cell {
    uint32_t code; /* Unicode; 0: the second half of a wide character */
    uint32_t style;
};

enum { TOP_ROWS_MAX = 400, TOP_COLUMNS_MAX = 1000 };

struct top_canvas {
    unsigned rows, columns;
    bool unicode; /* more than ASCII may be drawn */
    struct top_cell *cells;
};

/* Gives it another size, at most TOP_ROWS_MAX by TOP_COLUMNS_MAX; empty. A zeroed canvas has none.
 * 0 or -ENOMEM, and then it has no cells. */
int top_canvas_resize(struct top_canvas *canvas, unsigned rows, unsigned columns);
void top_canvas_done(struct top_canvas *canvas);

/* Spaces everywhere. */
void top_canvas_clear(struct top_canvas *canvas);

void top_canvas_put(struct top_canvas *canvas, unsigned row, unsigned column, uint32_t code,
                    enum top_style style);

/* Writes UTF-8 up to the column `end`, and returns the column behind it. */
unsigned top_canvas_text(struct top_canvas *canvas, unsigned row, unsigned column, unsigned end,
                         enum top_style style, const char *text);

/* The same, formatted; up to the edge. */
unsigned top_canvas_print(struct top_canvas *canvas, unsigned row, unsigned column,
                          enum top_style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ASCII that ends before the column `end`. */
void top_canvas_right(struct top_canvas *canvas, unsigned row, unsigned end, enum top_style style,
                      const char *text);

/* Words, wrapped, in at most `rows` rows from column 1 to the edge. Returns how many it took. */
unsigned top_canvas_wrap(struct top_canvas *canvas, unsigned row, unsigned rows, unsigned column,
                         enum top_style style, const char *text);

/* A style for what stands in a row. */
void top_canvas_paint(struct top_canvas *canvas, unsigned row, enum top_style style);

/* ---- charts: eighths of blocks where the terminal has them, else ASCII ---- */

/* One column for each value from `column` on, `height` rows up from `row`, which is the lowest.
 * NAN: nothing. The highest fills it; returns that. */
float top_canvas_spark(struct top_canvas *canvas, unsigned row, unsigned column, unsigned height,
                       const float *values, size_t count, enum top_style style);

/* A bar of `part` (0 to 1) of so many columns. */
void top_canvas_bar(struct top_canvas *canvas, unsigned row, unsigned column, unsigned width,
                    double part, enum top_style style);
