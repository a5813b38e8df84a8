/* SPDX-License-Identifier: MIT */
#include "top/canvas.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { LINE_BYTES = 1024 };

int top_canvas_resize(struct top_canvas *canvas, unsigned rows, unsigned columns)
{
    free(canvas->cells);
    canvas->rows = rows < TOP_ROWS_MAX ? rows : TOP_ROWS_MAX;
    canvas->columns = columns < TOP_COLUMNS_MAX ? columns : TOP_COLUMNS_MAX;
    size_t count = (size_t)canvas->rows * canvas->columns;
    canvas->cells = calloc(count > 0 ? count : 1, sizeof(*canvas->cells));
    if (!canvas->cells) {
        canvas->rows = canvas->columns = 0;
        return -ENOMEM;
    }
    top_canvas_clear(canvas);
    return 0;
}

void top_canvas_done(struct top_canvas *canvas)
{
    free(canvas->cells);
    *canvas = (struct top_canvas){ 0 };
}

void top_canvas_clear(struct top_canvas *canvas)
{
    for (size_t i = 0; i < (size_t)canvas->rows * canvas->columns; i++)
        canvas->cells[i] = (struct top_cell){ ' ', TOP_PLAIN };
}

static void put_cell(struct top_canvas *canvas, unsigned row, unsigned column, uint32_t code,
                     enum top_style style)
{
    if (row < canvas->rows && column < canvas->columns)
        canvas->cells[(size_t)row * canvas->columns + column] = (struct top_cell){ code, style };
}

/* Returns the columns that a character needs. A character that cannot be shown becomes `?`. */
static int width_of(const struct top_canvas *canvas, uint32_t *code)
{
    if (*code >= ' ' && *code < 0x7f)
        return 1;
    int width = canvas->unicode && *code >= 0xa0 ? wcwidth((wchar_t)*code) : -1;
    if (width < 0)
        *code = '?';
    return width < 0 ? 1 : width;
}

unsigned top_canvas_text(struct top_canvas *canvas, unsigned row, unsigned column, unsigned end,
                         enum top_style style, const char *text)
{
    unsigned most = end < canvas->columns ? end : canvas->columns;
    while (*text) {
        uint32_t code = '?';
        const size_t len = utf8_decode(span_text(text), &code);
        text += len > 0 ? len : 1;
        unsigned width = (unsigned)width_of(canvas, &code);
        if (width == 0)
            continue; /* a combining character would change the one before */
        if (column + width > most)
            break;
        put_cell(canvas, row, column, code, style);
        if (width == 2)
            put_cell(canvas, row, column + 1, 0, style);
        column += width;
    }
    return column;
}

unsigned top_canvas_print(struct top_canvas *canvas, unsigned row, unsigned column,
                          enum top_style style, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return top_canvas_text(canvas, row, column, canvas->columns, style, text);
}

void top_canvas_right(struct top_canvas *canvas, unsigned row, unsigned end, enum top_style style,
                      const char *text)
{
    unsigned len = (unsigned)strlen(text);
    top_canvas_text(canvas, row, end > len ? end - len : 0, end, style, text);
}

unsigned top_canvas_wrap(struct top_canvas *canvas, unsigned row, unsigned rows, unsigned column,
                         enum top_style style, const char *text)
{
    unsigned at = column, used = 0;
    while (*text && used < rows) {
        char word[LINE_BYTES];
        size_t len = strcspn(text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)len, text);
        unsigned room = canvas->columns > at ? canvas->columns - at : 0;
        if (at > column && len + 1 > room) {
            used++;
            at = column;
        }
        if (used < rows)
            at = top_canvas_text(canvas, row + used, at, canvas->columns, style, word) + 1;
        text += len + strspn(text + len, " ");
    }
    return used < rows ? used + 1 : rows;
}

void top_canvas_paint(struct top_canvas *canvas, unsigned row, enum top_style style)
{
    for (unsigned column = 0; row < canvas->rows && column < canvas->columns; column++)
        canvas->cells[(size_t)row * canvas->columns + column].style = style;
}

/* ---- charts ---- */

enum { EIGHTHS = 8, LOWEST = 0x2581, FULL = 0x2588 };

static uint32_t rising(const struct top_canvas *canvas, unsigned eighths)
{
    static const char ascii[EIGHTHS + 1] = " _.:-=+*#";
    if (!canvas->unicode)
        return (unsigned char)ascii[eighths];
    return eighths == 0 ? ' ' : LOWEST - 1 + eighths;
}

static uint32_t growing(const struct top_canvas *canvas, unsigned eighths)
{
    if (!canvas->unicode)
        return eighths > EIGHTHS / 2 ? '#' : ' ';
    return eighths == 0 ? ' ' : FULL + EIGHTHS - eighths;
}

/* A known value is at least an eighth high, so that zero and unknown differ. */
static unsigned eighths_of(double part, unsigned columns)
{
    if (!(part > 0))
        return 1;
    unsigned eighths = (unsigned)(part * columns * EIGHTHS + 0.5);
    return eighths == 0 ? 1 : eighths;
}

float top_canvas_spark(struct top_canvas *canvas, unsigned row, unsigned column, unsigned height,
                       const float *values, size_t count, enum top_style style)
{
    float most = 0;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        unsigned left = eighths_of(most > 0 ? values[i] / most : 0, height);
        for (unsigned up = 0; up < height && up <= row && left > 0; up++) {
            unsigned here = left < EIGHTHS ? left : EIGHTHS;
            put_cell(canvas, row - up, column + (unsigned)i, rising(canvas, here),
                     values[i] > 0 ? style : TOP_DIM);
            left -= here;
        }
    }
    return most;
}

void top_canvas_bar(struct top_canvas *canvas, unsigned row, unsigned column, unsigned width,
                    double part, enum top_style style)
{
    if (!(part > 0))
        return;
    unsigned left = eighths_of(part < 1 ? part : 1, width);
    if (!canvas->unicode && left < EIGHTHS)
        left = EIGHTHS; /* a small value is visible */
    for (unsigned i = 0; i < width && left > 0; i++) {
        unsigned here = left < EIGHTHS ? left : EIGHTHS;
        put_cell(canvas, row, column + i, growing(canvas, here), style);
        left -= here;
    }
}
