/* SPDX-License-Identifier: MIT
 *
 * The problems of a configuration: errors, which prevent its use, and warnings, which do not.
 * Problems are collected and not printed at once, so that one run reports all of them, in the
 * order of the file. Each has an origin: where the value was given.
 */
#pragma once

#include "base/span.h"
#include "config/arena.h"

#include <stdio.h>

/* Where a value can be given, in ascending order of precedence. */
enum config_layer {
    CONFIG_BY_DEFAULT,
    CONFIG_BY_FILE,
    CONFIG_BY_ENVIRONMENT,
    CONFIG_BY_FLAG,
    CONFIG_BY_ARGUMENT /* the folder on the command line */
};

struct config_origin {
    enum config_layer layer;
    const char *name; /* default: why it is not the usual one, or NULL; file: path; environment:
                         variable; flag: --name; argument: the folder */
    unsigned line;    /* of the file; 0: no line in particular */
};

/* "default", "weir.conf:12", "environment WEIR_MODEL", "flag --model", "command line". */
enum { CONFIG_ORIGIN_MAX = 512 };
void config_problem_format_origin(struct config_origin origin, char out[CONFIG_ORIGIN_MAX]);

/* The start of a message about a value of `setting`: "weir.conf:12: listen: ", "WEIR_LISTEN: ",
 * "--listen: "; "" for a default and for the folder on the command line. */
void config_problem_format_label(struct config_origin origin, const char *setting,
                                 char out[CONFIG_ORIGIN_MAX]);

/* Why a value is not acceptable, in words that follow the setting's name and a
 * colon: "`64Q` is not a size; write ...". */
struct config_reason {
    char text[512];
};

/* Writes the reason and returns false, so that a check can end with the call. */
bool config_problem_refuse(struct config_reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How many bytes of a wrong value a message repeats, for "%.*s". */
enum { CONFIG_QUOTE_MAX = 80 };
static inline int config_problem_quote_len(struct span text)
{
    return text.len < CONFIG_QUOTE_MAX ? (int)text.len : CONFIG_QUOTE_MAX;
}

/* Errors, and warnings, that all commands but `weir check` show; further ones are only counted. */
enum { CONFIG_PROBLEMS_SHOWN = 20 };

struct config_problem {
    struct config_problem *next;
    struct config_origin origin;
    bool warning;
    const char *text;
};

struct config_problems {
    struct config_arena *arena; /* the texts' */
    struct config_problem *first, *last;
    unsigned error_count, warning_count;
    unsigned flag_error_count; /* of the errors, those of the command line */
};

void config_problem_error(struct config_problems *problems, struct config_origin origin,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));
void config_problem_warning(struct config_problems *problems, struct config_origin origin,
                            const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Prints one line for each: `weir.conf:3: error: what, and what to do`, those of
 * files in order of their lines. Control bytes become `?`. It shows at most `most` errors and as
 * many warnings, and counts the others. */
void config_problems_print(const struct config_problems *problems, unsigned most, FILE *out);
