/* SPDX-License-Identifier: MIT
 *
 * The options of `weir load` and `weir load merge` that are about the result, and its printing.
 */
#pragma once

#include "load/result.h"
#include "option/option.h"

struct program_output {
    bool json, csv, explain;
    const char *hgrm, *ndjson; /* paths, or NULL */
    struct option_list slos;
};

/* The rows read into a struct program_output. NULL name at the end. */
extern const struct option program_output_options[];

/* Prints the report of `run`, and writes the files that the options name. Returns the exit status.
 * On an error it prints a message that begins with `weir: ` and `prefix`. */
int program_output_print(const struct program_output *output, const struct load_run *run,
                         const char *prefix);

/* Checks the options, and whether the files can be written; false: it has printed what is wrong. */
bool program_output_check(const struct program_output *output, const char *prefix);
