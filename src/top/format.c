/* SPDX-License-Identifier: MIT */
#include "top/format.h"

#include "base/duration.h"
#include "base/num.h"
#include "base/size.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct top_text top_format_count(uint64_t count)
{
    char digits[NUM_U64_DIGITS];
    size_t len = num_format_u64(digits, count), at = 0;
    struct top_text out;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    out.text[at] = '\0';
    return out;
}

/* Decimals that leave three digits, for a number below 1000. */
static int decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

struct top_text top_format_rate(double rate)
{
    struct top_text out = { "-" };
    if (isnan(rate))
        return out;
    if (rate >= 99.95)
        return top_format_count(rate < 1e18 ? (uint64_t)(rate + 0.5) : UINT64_MAX);
    if (rate < 0.005)
        return (struct top_text){ "0" };
    snprintf(out.text, sizeof(out.text), "%.*f", decimals(rate), rate);
    return out;
}

struct top_text top_format_bytes(double bytes)
{
    struct top_text out = { "-" };
    if (!isnan(bytes))
        snprintf(out.text, sizeof(out.text), "%s",
                 size_format(bytes < 1e19 ? (uint64_t)(bytes + 0.5) : UINT64_MAX).text);
    return out;
}

struct top_text top_format_duration(uint64_t ns)
{
    struct top_text out = { "-" };
    if (ns > 0)
        snprintf(out.text, sizeof(out.text), "%s", duration_format(ns).text);
    return out;
}

struct top_text top_format_span(uint64_t ns)
{
    struct top_text out;
    uint64_t s = ns / DURATION_SECOND, min = s / 60, h = min / 60;
    if (s < 60 && ns % DURATION_SECOND != 0 && s < 10)
        snprintf(out.text, sizeof(out.text), "%.1f s", (double)ns / 1e9);
    else if (s < 60)
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " s", s);
    else if (h == 0)
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " min", min);
    else if (h < 48)
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " h %02" PRIu64 " min", h, min % 60);
    else
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " d %" PRIu64 " h", h / 24, h % 24);
    return out;
}

struct top_text top_format_share(double part, double whole)
{
    struct top_text out = { "-" };
    if (whole > 0 && part >= 0)
        snprintf(out.text, sizeof(out.text), "%.1f %%", 100 * part / whole);
    return out;
}
