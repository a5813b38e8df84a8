/* SPDX-License-Identifier: MIT */
#include "load/figure.h"

#include "base/duration.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct unit {
    double size;
    const char *name;
};

/* Decimals that leave three digits. */
static int decimals(double value)
{
    double size = fabs(value);
    return size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
}

/* The greatest unit that the value fills, or the last. */
static struct load_figure figure(double value, const struct unit *units, size_t count)
{
    struct load_figure result;
    size_t i = 0;
    while (i + 1 < count && fabs(value) < units[i].size * 0.9995)
        i++;
    double shown = value / units[i].size;
    int places = i + 1 < count || units[i].size > 1 ? decimals(shown) : 0;
    (void)snprintf(result.text, sizeof(result.text), "%.*f %s", places, shown, units[i].name);
    return result;
}

struct load_figure load_figure_time(double ns)
{
    struct load_figure result;
    (void)snprintf(result.text, sizeof(result.text), "%s%s", ns < 0 ? "-" : "",
                   duration_format((uint64_t)(fabs(ns) + 0.5)).text);
    return result;
}

struct load_figure load_figure_bytes(double bytes)
{
    static const struct unit units[] = {
        { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" }, { 1, "B" }
    };
    return figure(bytes, units, sizeof(units) / sizeof(units[0]));
}

struct load_figure load_figure_share(double share)
{
    struct load_figure result;
    double percent = share * 100;
    (void)snprintf(result.text, sizeof(result.text), "%.*f %%",
                   percent < 0.1 && percent > 0 ? 4 : 2, percent);
    return result;
}

struct load_figure load_figure_number(double value)
{
    struct load_figure result;
    int places = fabs(value) < 9.995 ? 2 : fabs(value) < 999.5 ? 1 : 0;
    (void)snprintf(result.text, sizeof(result.text), "%.*f", places, value);
    return result;
}
