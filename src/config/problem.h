/* SPDX-License-Identifier: MIT
 *
 * What is wrong with a configuration: errors, which keep it from being used, and
 * warnings, which do not. They are collected rather than printed, so that one
 * run tells everything, in the order of the file.
 */
#pragma once

#include "config/arena.h"
#include "config/origin.h"

#include <stdio.h>

/* Of each sort; more are only counted. */
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
 * files in order of their lines. Control bytes become `?`. */
void config_problems_print(const struct config_problems *problems, FILE *out);
