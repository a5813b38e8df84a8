/* SPDX-License-Identifier: MIT
 *
 * Options of the command line: --name value, --name=value, in any order with the
 * one argument; everything behind `--` is the argument. Settings come from
 * config/settings.def and are collected unread; the few others are options here.
 */
#pragma once

#include "config/read.h"
#include "program/command.h"

#include <stdbool.h>

/* What a command takes. */
enum program_accepts {
    PROGRAM_ARGUMENT = 1,      /* a DIR or the like */
    PROGRAM_CONFIG_FILE = 2,   /* -c */
    PROGRAM_SETTINGS = 4,      /* everything in settings.def that has a flag */
    PROGRAM_SERVE_OPTIONS = 8, /* --ready-fd, --quiet */
    PROGRAM_EXPLAIN = 16,
    PROGRAM_CONTROL = 32, /* --control, of a running server */
    PROGRAM_NOW = 64,     /* --now */
    PROGRAM_STATS = 128,  /* --json, --prometheus, and --explain of its own */
    PROGRAM_TOP = 256,    /* --interval */
    PROGRAM_TRACE = 512,  /* a second argument, -H, --method, --host, --live, --json */
    PROGRAM_LOAD = 1024,  /* those of load/option.h and program/load.h */
    PROGRAM_MERGE = 2048  /* any number of arguments, --json, --csv, --hgrm, --ndjson, --slo */
};

/* An option that is no setting. */
struct program_option {
    const char *name;
    char letter;             /* 0: none */
    const char *placeholder; /* NULL: takes no value */
    unsigned accepted_by;    /* any of these bits; 0: every command */
    const char *sentence;
};

/* NULL name at the end. */
extern const struct program_option program_option_table[];

struct program_options {
    const char *argument;    /* or NULL */
    const char *config_file; /* or NULL */
    struct config_flag *flags;
    size_t flag_count;
    int ready_fd; /* -1: none */
    bool quiet;
    bool explain;
    bool now;
    bool json, prometheus, openmetrics;
    const char *interval; /* or NULL */
    const char *second;   /* argument, or NULL */
    const char **fields;  /* of a request, "Name: value" */
    size_t field_count;
    const char *method; /* or NULL */
    const char *host;   /* or NULL */
    bool live;
    bool csv;
    const char *hgrm, *ndjson; /* or NULL */
    const char **slos;
    size_t slo_count;
    const char **files;
    size_t file_count;
    const char *control; /* or NULL */
};

enum program_options_result {
    PROGRAM_OPTIONS_READ,
    PROGRAM_OPTIONS_ANSWERED, /* --help or --version was asked for and printed */
    PROGRAM_OPTIONS_WRONG     /* told on standard error, in one line */
};

/* Reads `arguments` (NULL at the end; borrowed for as long as the options are
 * used). End with program_options_done in every case. */
enum program_options_result program_options_read(const struct program_command *command,
                                                 const char *const *arguments,
                                                 struct program_options *ret_options);
void program_options_done(struct program_options *options);

/* What a command does with its options; returns the exit status. */
typedef int program_options_action(const struct program_command *command,
                                   const struct program_options *options);

/* Reads `arguments`, acts on them if they are right and no answer by themselves, and returns the
 * exit status. */
int program_options_act(const struct program_command *command, const char *const *arguments,
                        program_options_action *action);
