/* SPDX-License-Identifier: MIT */
#include "load/print.h"

#include <errno.h>
#include <stdlib.h>

static bool all_met(const struct load_report *report, const struct load_outcome *outcome)
{
    for (unsigned i = 0; i < report->slos->count; i++) {
        const struct load_slo *slo = &report->slos->slo[i];
        if (!load_slo_met(slo, load_slo_value(slo, report->run, outcome)))
            return false;
    }
    return true;
}

int load_report_init(struct load_report *report, const struct load_run *run,
                     const struct load_slos *slos)
{
    size_t room = run->outcome_count > 0 ? run->outcome_count : 1;
    *report = (struct load_report){
        .run = run,
        .slos = slos,
        .slos_met = true,
        .verdicts = calloc(room, sizeof(*report->verdicts)),
        .derived = calloc(room, sizeof(*report->derived)),
    };
    if (!report->verdicts || !report->derived) {
        load_report_done(report);
        return -ENOMEM;
    }
    bool invalid = run->outcome_count == 0;
    for (size_t i = 0; i < run->outcome_count; i++) {
        const struct load_outcome *outcome = &run->outcomes[i];
        report->derived[i] = load_trust_derive(run, outcome);
        load_trust_judge(run, outcome, slos, &report->verdicts[i]);
        invalid = invalid || report->verdicts[i].invalid;
        report->slos_met = report->slos_met && all_met(report, outcome);
    }
    report->conclusion = invalid ? LOAD_INVALID : report->slos_met ? LOAD_GOOD : LOAD_SLO_MISSED;
    return 0;
}

void load_report_done(struct load_report *report)
{
    free(report->verdicts);
    free(report->derived);
    *report = (struct load_report){ 0 };
}
