/* SPDX-License-Identifier: MIT */
#include "program/output.h"

#include "load/report.h"
#include "os/file.h"
#include "program/command.h"

#define FILE_OPTION(member) OPTION_TEXT, OPTION_INTO(program_output, member)

const struct option program_output_options[] = {
    { "json", 0, NULL, "print one JSON object (docs/load-json.md)", OPTION_PRESENT,
      OPTION_INTO(program_output, json) },
    { "csv", 0, NULL, "print a row for each step", OPTION_PRESENT,
      OPTION_INTO(program_output, csv) },
    { "explain", 0, NULL, "say what the words of the report mean", OPTION_PRESENT,
      OPTION_INTO(program_output, explain) },
    { "hgrm", 0, "FILE", "write HdrHistogram's percentile distribution", FILE_OPTION(hgrm) },
    { "ndjson", 0, "FILE", "write a line of JSON for each second", FILE_OPTION(ndjson) },
    { "slo", 0, "LIST", "objectives: 'p99<10ms,errors<0.1%,throughput>1000,mean<=2ms'", OPTION_LIST,
      OPTION_INTO(program_output, slos) },
    { .name = NULL },
};

static bool read_slos(const struct program_output *output, struct load_slos *slos,
                      char why[LOAD_SLO_WHY_MAX])
{
    *slos = (struct load_slos){ 0 };
    for (size_t i = 0; i < output->slos.count; i++)
        if (!load_slos_parse(output->slos.at[i], slos, why))
            return false;
    return true;
}

/* A long run must not end with a path that is wrong. */
static bool check_files(const struct program_output *output, const char *prefix)
{
    const struct {
        const char *name, *path;
    } files[] = { { "hgrm", output->hgrm }, { "ndjson", output->ndjson } };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        bool given = files[i].path && strcmp(files[i].path, "-") != 0;
        int rc = given ? os_file_may_write(files[i].path) : 0;
        if (rc < 0) {
            fprintf(stderr, "weir: %s--%s: %s: %s\n", prefix, files[i].name, files[i].path,
                    strerror(-rc));
            return false;
        }
    }
    return true;
}

bool program_output_check(const struct program_output *output, const char *prefix)
{
    struct load_slos slos;
    char why[LOAD_SLO_WHY_MAX];
    if (output->json && output->csv) {
        fprintf(stderr, "weir: %s--json and --csv are different answers; choose one\n", prefix);
        return false;
    }
    if (output->explain && (output->json || output->csv)) {
        fprintf(stderr, "weir: %s--explain explains the report for people; leave out --%s\n",
                prefix, output->json ? "json" : "csv");
        return false;
    }
    if (!check_files(output, prefix))
        return false;
    bool good = read_slos(output, &slos, why);
    if (!good)
        fprintf(stderr, "weir: %s--slo: %s\n", prefix, why);
    return good;
}

int program_output_print(const struct program_output *output, const struct load_run *run,
                         const char *prefix)
{
    struct load_report report;
    struct load_slos slos;
    char why[LOAD_SLO_WHY_MAX];
    const char *path = "the result";
    const struct load_report_output how = { output->json  ? LOAD_FORM_JSON
                                            : output->csv ? LOAD_FORM_CSV
                                                          : LOAD_FORM_TEXT,
                                            output->explain, output->hgrm, output->ndjson };
    (void)read_slos(output, &slos, why); /* program_output_check has read them before */
    int rc = load_report_init(&report, run, &slos);
    if (rc == 0)
        rc = load_report_print(&report, &how, stdout, &path);
    int status = rc == 0 ? (int)report.conclusion : PROGRAM_FAILED;
    if (rc < 0 && !ferror(stdout)) /* about standard output, main has a message */
        fprintf(stderr, "weir: %s%s: %s\n", prefix, path, strerror(-rc));
    load_report_done(&report);
    return status;
}
