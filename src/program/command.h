/* SPDX-License-Identifier: MIT
 *
 * The commands of the command line. Each one reads its options, calls the room
 * that does the work, and says what went wrong; nothing is done here.
 */
#pragma once

#include <stdio.h>

/* The exit statuses of every command. */
enum { PROGRAM_OK = 0, PROGRAM_FAILED = 1, PROGRAM_USAGE = 2 };

struct program_command {
    const char *name;
    const char *usage;    /* behind "weir name " */
    const char *sentence; /* for the list of commands */
    const char *text;     /* for its own help: what one has to know, with examples */
    unsigned accepts;     /* bits of enum program_accepts, in options.h */
    /* `arguments` are those behind the command's name, NULL at the end. Returns
     * the exit status. */
    int (*run)(const struct program_command *command, const char *const *arguments);
};

/* All commands, in the order of the help; NULL name at the end. */
extern const struct program_command program_commands[];

const struct program_command *program_command_find(const char *name);

int program_serve(const struct program_command *command, const char *const *arguments);
int program_check(const struct program_command *command, const char *const *arguments);
int program_load(const struct program_command *command, const char *const *arguments);
int program_models(const struct program_command *command, const char *const *arguments);
int program_password(const struct program_command *command, const char *const *arguments);
int program_reload(const struct program_command *command, const char *const *arguments);
int program_stats(const struct program_command *command, const char *const *arguments);
int program_stop(const struct program_command *command, const char *const *arguments);
int program_top(const struct program_command *command, const char *const *arguments);
int program_trace(const struct program_command *command, const char *const *arguments);
int program_help(const struct program_command *command, const char *const *arguments);

/* Prints the help of a command; NULL: of the program. */
void program_help_print(const struct program_command *command, FILE *out);
