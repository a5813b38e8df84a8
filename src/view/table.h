/* SPDX-License-Identifier: MIT
 *
 * The rows of the tables for people: a name, a number with its unit, and a sentence if the reader
 * wants to know what the number means. Private to view/.
 */
#pragma once

#include "stats/snapshot.h"

#include <stdio.h>

enum { VIEW_TABLE_NAME = 24, VIEW_TABLE_NUMBER = 14 }; /* columns */

struct view_table {
    FILE *out;
    bool explain;
};

/* Begins a row. Underlines in the name become spaces. */
void view_table_name(const struct view_table *table, const char *name);

/* Writes a number and its unit. Bytes and microseconds are rounded to three digits: 6.13 MiB. */
void view_table_amount(const struct view_table *table, uint64_t value, const char *unit);

/* Ends a row. With `explain`, the sentence follows on a line of its own. */
void view_table_sentence(const struct view_table *table, const char *sentence);

/* Writes the head of the columns of view_table_quantiles: `name`, count, p50 and so on. */
void view_table_quantiles_head(const struct view_table *table, const char *name);

/* Writes the count of the durations, and p50, p90, p99 and p99.9. */
void view_table_quantiles(const struct view_table *table, const struct stats_counts *counts);
