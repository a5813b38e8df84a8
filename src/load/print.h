/* SPDX-License-Identifier: MIT
 *
 * A run as people and programs read it. Every form is made from one report, so that
 * none can say what another does not.
 */
#pragma once

#include "load/trust.h"

#include <stdio.h>

/* How a run ended. What is invalid cannot tell whether an objective was reached, so it comes
 * first. The values are exit statuses. */
enum load_conclusion { LOAD_GOOD = 0, LOAD_SLO_MISSED = 3, LOAD_INVALID = 4 };

/* A run, what it is worth, and whether it reached what was asked of it. */
struct load_report {
    const struct load_run *run;
    const struct load_slos *slos;
    struct load_verdict *verdicts; /* of each outcome */
    struct load_derived *derived;  /* of each outcome */
    bool slos_met;                 /* all, in all steps */
    enum load_conclusion conclusion;
};

/* Borrows both until load_report_done; `slos` may be empty. 0 or -ENOMEM. */
MUST_USE int load_report_init(struct load_report *report, const struct load_run *run,
                              const struct load_slos *slos);
void load_report_done(struct load_report *report);

enum load_form { LOAD_FORM_TEXT, LOAD_FORM_JSON, LOAD_FORM_CSV };

/* Writes the report to `out`, and to the files `hgrm` and `ndjson` where they are not NULL (`-`:
 * to `out`). Of several steps each has a histogram file of its own: out.hgrm becomes out.1.hgrm,
 * out.2.hgrm. 0, or -errno with `ret_path` the file that could not be written. */
struct load_print {
    enum load_form form;
    const char *hgrm, *ndjson; /* or NULL */
};
MUST_USE int load_print(const struct load_report *report, const struct load_print *how, FILE *out,
                        const char **ret_path);
