/* SPDX-License-Identifier: MIT */
#include "view/table.h"

#include "base/duration.h"
#include "base/size.h"

#include <inttypes.h>
#include <string.h>

void view_table_name(const struct view_table *table, const char *name)
{
    char text[VIEW_TABLE_NAME * 2];
    snprintf(text, sizeof(text), "%s", name);
    for (char *at = text; *at; at++)
        if (*at == '_')
            *at = ' ';
    fprintf(table->out, "  %-*s", VIEW_TABLE_NAME, text);
}

void view_table_sentence(const struct view_table *table, const char *sentence)
{
    if (table->explain)
        fprintf(table->out, "\n      %s", sentence);
    fputc('\n', table->out);
}

/* "6.13 MiB" with its figures in the column of numbers. */
static void write_rounded(const struct view_table *table, const char *text)
{
    int figures = (int)strcspn(text, " ");
    fprintf(table->out, " %*.*s%s", VIEW_TABLE_NUMBER, figures, text, text + figures);
}

void view_table_amount(const struct view_table *table, uint64_t value, const char *unit)
{
    if (strcmp(unit, "bytes") == 0)
        write_rounded(table, size_format(value).text);
    else if (strcmp(unit, "microseconds") == 0)
        write_rounded(table, duration_format(value * DURATION_US).text);
    else
        fprintf(table->out, " %*" PRIu64 " %s", VIEW_TABLE_NUMBER, value, unit);
}

/* Aligns figures and units in columns. */
static void write_duration(FILE *out, uint64_t ns)
{
    struct duration_text duration = duration_format(ns);
    int figures = (int)strcspn(duration.text, " ");
    fprintf(out, " %7.*s %-2s", figures, duration.text, duration.text + figures + 1);
}

void view_table_quantiles_head(const struct view_table *table, const char *name)
{
    fprintf(table->out, "%-*s %*s %10s %10s %10s %10s\n", VIEW_TABLE_NAME + 2, name,
            VIEW_TABLE_NUMBER, "count", "p50   ", "p90   ", "p99   ", "p99.9   ");
}

void view_table_quantiles(const struct view_table *table, const struct stats_counts *counts)
{
    static const double quantiles[] = { 0.5, 0.9, 0.99, 0.999 };
    fprintf(table->out, " %*" PRIu64, VIEW_TABLE_NUMBER, counts->count);
    for (unsigned i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
        write_duration(table->out, stats_snapshot_quantile_ns(counts, quantiles[i]));
}
