/* SPDX-License-Identifier: MIT
 *
 * `weir load merge`: makes one result of those of several machines.
 */
#include "load/merge.h"

#include "program/command.h"
#include "program/output.h"

struct merge_options {
    struct program_output output;
    struct option_list files;
};

static const struct option_group merge_groups[] = {
    { .title = "Options",
      .options = program_output_options,
      .offset = offsetof(struct merge_options, output) },
    { .options = option_answers },
    { .options = NULL },
};

static int run_merge(void *given, const char *const *words)
{
    (void)words;
    const struct merge_options *options = given;
    struct load_read read;
    char why[LOAD_WHY_MAX];
    if (!program_output_check(&options->output, "load merge: "))
        return PROGRAM_USAGE;
    if (options->files.count == 0) {
        fprintf(stderr, "weir: load merge: no file is named; `weir help load merge` explains\n");
        return PROGRAM_USAGE;
    }
    if (load_merge_files(options->files.at, options->files.count, &read, why) != 0) {
        fprintf(stderr, "weir: load merge: %s\n", why);
        return PROGRAM_FAILED;
    }
    int status = program_output_print(&options->output, &read.run, "load merge: ");
    load_read_done(&read);
    return status;
}

const struct program_command program_load_merge = {
    .options = { .name = "load merge",
                 .groups = merge_groups,
                 .arguments_offset = offsetof(struct merge_options, files),
                 .arguments_most = SIZE_MAX },
    .brief = "FILE...",
    .usage = "FILE... [OPTION]...",
    .sentence = "make one result of several",
    .text = "Makes one result of the files that `weir load --json` wrote on several machines,\n"
            "or in several processes. Counts and histograms add, so nothing is lost. The runs\n"
            "must have put the same load on the same server.\n"
            "\n"
            "Exit status, as of `weir load`: 0; 3 when an objective is missed; 4 when the\n"
            "result is invalid; 1 when a file cannot be merged; 2 when the command line is\n"
            "wrong.\n"
            "\n"
            "Examples:\n"
            "  weir load merge one.json two.json\n"
            "  weir load merge *.json --slo 'p99<10ms' --json\n",
    .size = sizeof(struct merge_options),
    .run = run_merge,
};
