/* SPDX-License-Identifier: MIT */
#include "top/chart.h"

#include <math.h>

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

/* Whatever is known is at least an eighth high, so that nothing and unknown differ. */
static unsigned eighths_of(double part, unsigned columns)
{
    if (!(part > 0))
        return 1;
    unsigned eighths = (unsigned)(part * columns * EIGHTHS + 0.5);
    return eighths == 0 ? 1 : eighths;
}

float top_chart_spark(struct top_canvas *canvas, unsigned row, unsigned column, unsigned height,
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
            top_canvas_put(canvas, row - up, column + (unsigned)i, rising(canvas, here),
                           values[i] > 0 ? style : TOP_DIM);
            left -= here;
        }
    }
    return most;
}

void top_chart_bar(struct top_canvas *canvas, unsigned row, unsigned column, unsigned width,
                   double part, enum top_style style)
{
    if (!(part > 0))
        return;
    unsigned left = eighths_of(part < 1 ? part : 1, width);
    if (!canvas->unicode && left < EIGHTHS)
        left = EIGHTHS; /* little is not nothing */
    for (unsigned i = 0; i < width && left > 0; i++) {
        unsigned here = left < EIGHTHS ? left : EIGHTHS;
        top_canvas_put(canvas, row, column + i, growing(canvas, here), style);
        left -= here;
    }
}
