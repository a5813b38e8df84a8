/* SPDX-License-Identifier: MIT */
#include "program/loadmerge.h"

#include "load/merge.h"
#include "load/print.h"
#include "program/options.h"

#include <string.h>

static const struct program_command merge_command = {
    "load merge",
    "FILE... [OPTION]...",
    "make one result of several",
    "Makes one result of those that `weir load --json` has written on several machines,\n"
    "or in several processes: counts and histograms add, so nothing is lost. They have\n"
    "to have asked the same of the same server.\n"
    "\n"
    "It exits as `weir load` does: 0, 3 when an objective is missed, 4 when the result\n"
    "is invalid; 1 when a file cannot be merged, 2 when the command line is wrong.\n"
    "\n"
    "Examples:\n"
    "  weir load merge one.json two.json\n"
    "  weir load merge *.json --slo 'p99<10ms' --json\n",
    PROGRAM_ARGUMENT | PROGRAM_MERGE,
    NULL
};

static int refuse(const char *text, const char *detail)
{
    fprintf(stderr, "weir: load merge: %s%s\n", text, detail);
    return PROGRAM_USAGE;
}

static int show(const struct load_run *run, const struct load_slos *slos,
                const struct load_print *how)
{
    struct load_report report;
    const char *path = "";
    int result = load_report_init(&report, run, slos);
    if (result == 0)
        result = load_print(&report, how, stdout, &path);
    int status = result == 0 ? (int)report.conclusion : PROGRAM_FAILED;
    if (result != 0)
        fprintf(stderr, "weir: load merge: %s: %s\n", path, strerror(-result));
    load_report_done(&report);
    return status;
}

static int merge(const struct program_command *command, const struct program_options *options)
{
    (void)command;
    struct load_slos slos = { 0 };
    struct load_print how = { options->json  ? LOAD_FORM_JSON
                              : options->csv ? LOAD_FORM_CSV
                                             : LOAD_FORM_TEXT,
                              options->hgrm, options->ndjson };
    char why[LOAD_WHY_MAX];
    if (options->json && options->csv)
        return refuse("--json and --csv are two answers; choose one", "");
    for (size_t i = 0; i < options->slo_count; i++)
        if (!load_slos_parse(options->slos[i], &slos, why))
            return refuse("--slo: ", why);
    if (options->file_count == 0)
        return refuse("which files? `weir help load merge` tells more", "");
    struct load_read read;
    if (load_merge_files(options->files, options->file_count, &read, why) != 0) {
        fprintf(stderr, "weir: load merge: %s\n", why);
        return PROGRAM_FAILED;
    }
    int status = show(&read.run, &slos, &how);
    load_read_done(&read);
    return status;
}

int program_load_merge(const char *const *arguments)
{
    return program_options_act(&merge_command, arguments, merge);
}
