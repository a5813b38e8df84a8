/* SPDX-License-Identifier: MIT
 *
 * A picture of the terminal in memory: cells, each with a character and a style. Screens are
 * drawn on it, and terminal.h sends the changes to the real terminal. Whatever is drawn beyond
 * the edges is ignored, so that a screen is safe at any size.
 *
 * A cell never holds a control character. Controls, and characters that the locale cannot
 * write, become `?`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum top_style {
    TOP_PLAIN,
    TOP_DIM,
    TOP_BOLD,
    TOP_TITLE,    /* of the first line */
    TOP_SELECTED, /* of the selected line */
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
    bool unicode; /* characters beyond ASCII may be drawn */
    struct top_cell *cells;
};

/* Resizes and clears the canvas; the limit is TOP_ROWS_MAX by TOP_COLUMNS_MAX. A zeroed canvas is
 * valid and has no cells. Returns 0 or -ENOMEM; then it has no cells either. */
int top_canvas_resize(struct top_canvas *canvas, unsigned rows, unsigned columns);
void top_canvas_done(struct top_canvas *canvas);

/* Fills the canvas with spaces. */
void top_canvas_clear(struct top_canvas *canvas);

/* Writes UTF-8 up to the column `end`, and returns the column after the text. */
unsigned top_canvas_text(struct top_canvas *canvas, unsigned row, unsigned column, unsigned end,
                         enum top_style style, const char *text);

/* The same with a format, up to the edge. */
unsigned top_canvas_print(struct top_canvas *canvas, unsigned row, unsigned column,
                          enum top_style style, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Writes ASCII that ends before the column `end`. */
void top_canvas_right(struct top_canvas *canvas, unsigned row, unsigned end, enum top_style style,
                      const char *text);

/* Writes words, wrapped, in at most `rows` rows from `column` to the edge. Returns how many rows
 * were used. */
unsigned top_canvas_wrap(struct top_canvas *canvas, unsigned row, unsigned rows, unsigned column,
                         enum top_style style, const char *text);

/* Gives a whole row a style. */
void top_canvas_paint(struct top_canvas *canvas, unsigned row, enum top_style style);

/* ---- charts: of block characters in eighths, or of ASCII ---- */

/* Draws one column for each value, from `column` on, in `height` rows above and with `row`. A NAN
 * draws nothing. The greatest value fills the height, and is returned. */
float top_canvas_spark(struct top_canvas *canvas, unsigned row, unsigned column, unsigned height,
                       const float *values, size_t count, enum top_style style);

/* Draws a bar: `part` (0 to 1) of `width` columns. */
void top_canvas_bar(struct top_canvas *canvas, unsigned row, unsigned column, unsigned width,
                    double part, enum top_style style);
