/* SPDX-License-Identifier: MIT
 *
 * The report of a run, for people and for programs. Every form is made from one struct, so that no
 * two forms can contradict each other.
 */
#pragma once

#include "load/trust.h"

#include <stdio.h>

/* How a run ended. The values are exit statuses. An invalid result cannot show whether an objective
 * was met, so LOAD_INVALID wins over LOAD_SLO_MISSED. */
enum load_conclusion { LOAD_GOOD = 0, LOAD_SLO_MISSED = 3, LOAD_INVALID = 4 };

/* A run, its verdicts, and whether it met its objectives. */
struct load_report {
    const struct load_run *run;
    const struct load_slos *slos;
    struct load_verdict *verdicts; /* of each outcome */
    struct load_derived *derived;  /* of each outcome */
    bool slos_met;                 /* all, in all steps; false without a step */
    enum load_conclusion conclusion;
};

/* Borrows both until load_report_done; `slos` may be empty. 0 or -ENOMEM. */
MUST_USE int load_report_init(struct load_report *report, const struct load_run *run,
                              const struct load_slos *slos);
void load_report_done(struct load_report *report);

enum load_form { LOAD_FORM_TEXT, LOAD_FORM_JSON, LOAD_FORM_CSV };

/* Writes the report to `out`, and to the files `hgrm` and `ndjson` where they are not NULL. `-`
 * stands for `out`. With several steps each one has its own histogram file: out.hgrm becomes
 * out.1.hgrm, out.2.hgrm. 0, or -errno with `ret_path` the file that could not be written. */
struct load_report_output {
    enum load_form form;
    bool explain;              /* LOAD_FORM_TEXT says what its words mean */
    const char *hgrm, *ndjson; /* or NULL */
};
MUST_USE int load_report_print(const struct load_report *report,
                               const struct load_report_output *how, FILE *out,
                               const char **ret_path);
