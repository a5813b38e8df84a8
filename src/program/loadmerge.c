/* SPDX-License-Identifier: MIT */
#include "program/loadmerge.h"

#include "load/merge.h"
#include "load/print.h"
#include "program/command.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: weir load merge [OPTION]... FILE...\n"
    "\n"
    "Makes one result of those that `weir load --json` has written on several machines,\n"
    "or in several processes: counts and histograms add, so nothing is lost. They have\n"
    "to have asked the same of the same server.\n"
    "\n"
    "Options:\n"
    "  --json             print one JSON object (docs/load-json.md)\n"
    "  --csv              print a row for each step\n"
    "  --hgrm FILE        write HdrHistogram's percentile distribution\n"
    "  --ndjson FILE      write a line of JSON for each second\n"
    "  --slo LIST         objectives: 'p99<10ms,errors<0.1%,throughput>1000,mean<=2ms'\n"
    "  -h, --help         print help and stop\n"
    "\n"
    "It exits as `weir load` does: 0, 3 when an objective is missed, 4 when the result\n"
    "is invalid; 1 when a file cannot be merged, 2 when the command line is wrong.\n";

struct merging {
    struct load_print how;
    struct load_slos slos;
    const char **paths; /* of those, lent from the arguments */
    size_t path_count;
};

static int refuse(const char *text, const char *detail)
{
    fprintf(stderr, "weir: load merge: %s%s\n", text, detail);
    return PROGRAM_USAGE;
}

/* The value of the option `name` if `word` is that: behind its `=`, or the next argument. */
static bool is_option(const char *word, const char *name, const char *const **next,
                      const char **ret_value)
{
    size_t len = strlen(name);
    if (strncmp(word, name, len) != 0 || (word[len] != '=' && word[len] != '\0'))
        return false;
    *ret_value = word[len] == '=' ? word + len + 1 : **next;
    if (word[len] == '\0' && **next)
        ++*next;
    return true;
}

static int take_valued(struct merging *merging, const char *word, const char *const **next)
{
    const char *value;
    char why[LOAD_SLO_WHY_MAX];
    if (is_option(word, "--hgrm", next, &value))
        merging->how.hgrm = value;
    else if (is_option(word, "--ndjson", next, &value))
        merging->how.ndjson = value;
    else if (!is_option(word, "--slo", next, &value))
        return refuse("unknown option ", word);
    else if (value && !load_slos_parse(value, &merging->slos, why))
        return refuse("--slo: ", why);
    return value ? PROGRAM_OK : refuse("a value is missing behind ", word);
}

static int take_form(struct merging *merging, enum load_form form)
{
    if (merging->how.form != LOAD_FORM_TEXT && merging->how.form != form)
        return refuse("--json and --csv are two answers; choose one", "");
    merging->how.form = form;
    return PROGRAM_OK;
}

static int read_arguments(struct merging *merging, const char *const *arguments)
{
    int status = PROGRAM_OK;
    bool only_files = false;
    while (*arguments && status == PROGRAM_OK) {
        const char *word = *arguments++;
        if (only_files || word[0] != '-')
            merging->paths[merging->path_count++] = word;
        else if (strcmp(word, "--") == 0)
            only_files = true;
        else if (strcmp(word, "--json") == 0)
            status = take_form(merging, LOAD_FORM_JSON);
        else if (strcmp(word, "--csv") == 0)
            status = take_form(merging, LOAD_FORM_CSV);
        else
            status = take_valued(merging, word, &arguments);
    }
    if (status == PROGRAM_OK && merging->path_count == 0)
        return refuse("which files? `weir load merge --help` tells more", "");
    return status;
}

static int show(const struct merging *merging, const struct load_run *run)
{
    struct load_report report;
    const char *path = "";
    int result = load_report_init(&report, run, &merging->slos);
    if (result == 0)
        result = load_print(&report, &merging->how, stdout, &path);
    int status = result == 0 ? (int)report.conclusion : PROGRAM_FAILED;
    if (result != 0)
        fprintf(stderr, "weir: load merge: %s: %s\n", path, strerror(-result));
    load_report_done(&report);
    return status;
}

static int merge(const struct merging *merging)
{
    struct load_read read;
    char why[LOAD_WHY_MAX];
    if (load_merge_files(merging->paths, merging->path_count, &read, why) != 0) {
        fprintf(stderr, "weir: load merge: %s\n", why);
        return PROGRAM_FAILED;
    }
    int status = show(merging, &read.run);
    load_read_done(&read);
    return status;
}

static bool wants_help(const char *const *arguments)
{
    for (; *arguments && strcmp(*arguments, "--") != 0; arguments++)
        if (strcmp(*arguments, "--help") == 0 || strcmp(*arguments, "-h") == 0)
            return true;
    return false;
}

int program_load_merge(const char *const *arguments)
{
    struct merging merging = { 0 };
    size_t count = 0;
    if (wants_help(arguments)) {
        fputs(usage, stdout);
        return PROGRAM_OK;
    }
    while (arguments[count])
        count++;
    merging.paths = calloc(count + 1, sizeof(*merging.paths));
    if (!merging.paths) {
        fprintf(stderr, "weir: no memory\n");
        return PROGRAM_FAILED;
    }
    int status = read_arguments(&merging, arguments);
    if (status == PROGRAM_OK)
        status = merge(&merging);
    free(merging.paths);
    return status;
}
