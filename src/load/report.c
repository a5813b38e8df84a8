/* SPDX-License-Identifier: MIT */
#include "load/report.h"

#include "load/forms.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct load_shown load_shown[LOAD_SHOWN] = {
    { 0.5, "p50", "p50" },          { 0.75, "p75", "p75" }, { 0.9, "p90", "p90" },
    { 0.95, "p95", "p95" },         { 0.99, "p99", "p99" }, { 0.999, "p99.9", "p99_9" },
    { 0.9999, "p99.99", "p99_99" },
};

void load_forms_classes(const struct load_outcome *outcome, uint64_t ret_class[5])
{
    memset(ret_class, 0, 5 * sizeof(ret_class[0]));
    for (unsigned i = 100; i < LOAD_STATUS_MAX; i++)
        ret_class[i / 100 - 1] += outcome->status[i];
}

/* ---- the report ---- */

static bool meets_objectives(const struct load_report *report, const struct load_outcome *outcome)
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
        .slos_met = run->outcome_count > 0,
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
        report->slos_met = report->slos_met && meets_objectives(report, outcome);
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

/* ---- files ---- */

static int flush_output(FILE *file)
{
    errno = 0;
    if (fflush(file) == 0 && !ferror(file))
        return 0;
    return errno != 0 ? -errno : -EIO;
}

/* Opens a file for writing; the name `-` is `out`. */
static FILE *open_output(const char *path, FILE *out)
{
    return strcmp(path, "-") == 0 ? out : fopen(path, "we");
}

static int close_output(FILE *file, FILE *out)
{
    int result = flush_output(file);
    if (file != out && fclose(file) != 0 && result == 0)
        result = -errno;
    return result;
}

static int write_ndjson(const struct load_report *report, const char *path, FILE *out)
{
    FILE *file = open_output(path, out);
    if (!file)
        return -errno;
    load_forms_ndjson(report, file);
    return close_output(file, out);
}

/* The file of one step among several: out.hgrm becomes out.2.hgrm. */
static int name_of_step(char name[PATH_MAX], const char *path, size_t step)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash + 1 : path, '.');
    size_t stem = dot && dot > (slash ? slash + 1 : path) ? (size_t)(dot - path) : strlen(path);
    int len = snprintf(name, PATH_MAX, "%.*s.%zu%s", (int)stem, path, step + 1, path + stem);
    return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int write_hgrm(const struct load_report *report, const char *path, FILE *out)
{
    bool several = report->run->outcome_count > 1 && strcmp(path, "-") != 0;
    int result = 0;
    for (size_t i = 0; i < report->run->outcome_count && result == 0; i++) {
        char name[PATH_MAX];
        result = several ? name_of_step(name, path, i) : 0;
        FILE *file = result == 0 ? open_output(several ? name : path, out) : NULL;
        if (!file)
            return result != 0 ? result : -errno;
        load_forms_hgrm(report, i, file);
        result = close_output(file, out);
    }
    return result;
}

static int write_form(const struct load_report *report, const struct load_report_output *how,
                      FILE *out)
{
    int result = 0;
    switch (how->form) {
    case LOAD_FORM_TEXT:
        load_forms_text(report, how->explain, out);
        break;
    case LOAD_FORM_JSON:
        result = load_forms_json(report, out);
        break;
    case LOAD_FORM_CSV:
        load_forms_csv(report, out);
        break;
    }
    return result != 0 ? result : flush_output(out);
}

int load_report_print(const struct load_report *report, const struct load_report_output *how,
                      FILE *out, const char **ret_path)
{
    *ret_path = "standard output";
    int result = write_form(report, how, out);
    if (result == 0 && how->hgrm) {
        *ret_path = how->hgrm;
        result = write_hgrm(report, how->hgrm, out);
    }
    if (result == 0 && how->ndjson) {
        *ret_path = how->ndjson;
        result = write_ndjson(report, how->ndjson, out);
    }
    return result;
}
