/* SPDX-License-Identifier: MIT */
#include "load/format.h"

#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct load_formatted load_format_time(double ns)
{
    struct load_formatted result;
    (void)snprintf(result.text, sizeof(result.text), "%s%s", ns < 0 ? "-" : "",
                   duration_format((uint64_t)(fabs(ns) + 0.5)).text);
    return result;
}

struct load_formatted load_format_bytes(double bytes)
{
    struct load_formatted result;
    (void)snprintf(result.text, sizeof(result.text), "%s",
                   size_format((uint64_t)(bytes + 0.5)).text);
    return result;
}

struct load_formatted load_format_share(double share)
{
    struct load_formatted result;
    double percent = share * 100;
    (void)snprintf(result.text, sizeof(result.text), "%.*f %%",
                   percent < 0.1 && percent > 0 ? 4 : 2, percent);
    return result;
}

struct load_formatted load_format_number(double value)
{
    struct load_formatted result;
    int places = fabs(value) < 9.995 ? 2 : fabs(value) < 999.5 ? 1 : 0;
    (void)snprintf(result.text, sizeof(result.text), "%.*f", places, value);
    return result;
}

void load_format_text(FILE *out, const char *text, size_t room)
{
    char clean[LOAD_FORMAT_TEXT_MAX + 1];
    size_t most = room < LOAD_FORMAT_TEXT_MAX ? room : LOAD_FORMAT_TEXT_MAX;
    size_t len = escape_text(clean, most, span_text(text), ESCAPE_TEXT);
    fwrite(clean, 1, len, out);
    if (escape_text(NULL, SIZE_MAX, span_text(text), ESCAPE_TEXT) > len)
        fputs("...", out);
}
