/* SPDX-License-Identifier: MIT
 *
 * The forms of a report, and what they share. Private to load/: the program calls load/report.h.
 * None of these functions checks `out` for errors. load_report_print does so at the end.
 */
#pragma once

#include "load/report.h"

/* The percentiles that are shown, in every form. */
enum { LOAD_SHOWN = 7 };
struct load_shown {
    double part;
    const char *text; /* p99.9 */
    const char *name; /* p99_9 */
};
extern const struct load_shown load_shown[LOAD_SHOWN];

void load_forms_text(const struct load_report *report, FILE *out);

/* As docs/load-json.md describes. 0 or -ENOMEM. */
MUST_USE int load_forms_json(const struct load_report *report, FILE *out);

/* A head, and a row for each step. */
void load_forms_csv(const struct load_report *report, FILE *out);

/* HdrHistogram's percentile distribution of the response times of a step, in milliseconds. */
void load_forms_hgrm(const struct load_report *report, size_t step, FILE *out);

/* A line of JSON for each second. */
void load_forms_ndjson(const struct load_report *report, FILE *out);

/* Counts the answers by class, "1xx" to "5xx". */
void load_forms_classes(const struct load_outcome *outcome, uint64_t ret_class[5]);
