/* SPDX-License-Identifier: MIT
 *
 * The commands of the command line. A command is a table of options, a help text and one
 * function, all in the file of its name. main.c reads the options and calls the function.
 */
#pragma once

#include "option/option.h"

/* The exit statuses of every command. */
enum { PROGRAM_OK = 0, PROGRAM_FAILED = 1, PROGRAM_USAGE = 2 };

struct program_command {
    struct option_command options; /* with the command's name */
    const char *brief;             /* behind the name in the list of commands */
    const char *usage;             /* behind the name in the command's own help */
    const char *sentence;          /* for the list of commands */
    const char *text;              /* for the command's own help, with examples */
    size_t size;                   /* of the struct that the options are read into */
    const void *defaults;          /* a struct of that size; NULL: zeroes */
    /* Set and free what the options hold; NULL: nothing. `end` follows `begin` in every case.
     * `begin` returns false when memory is short. */
    bool (*begin)(void *options);
    void (*end)(void *options);
    /* `options` is the command's struct. `words` are those behind the name, NULL at the end.
     * Returns the exit status. */
    int (*run)(void *options, const char *const *words);
};

extern const struct program_command program_serve, program_check, program_reload, program_stop,
    program_stats, program_top, program_password, program_trace, program_load, program_load_merge,
    program_models, program_help;

/* All commands, in the order of the help; NULL at the end. */
extern const struct program_command *const program_commands[];

/* Two words name a command such as `load merge`. `second` may be NULL. Returns NULL for no
 * command, and sets `ret_words` to the number of words that the name takes. */
const struct program_command *program_command_find(const char *first, const char *second,
                                                   size_t *ret_words);

/* The argument of a command that takes at most one; NULL: none is given. */
static inline const char *program_command_argument(const struct option_list *arguments)
{
    return arguments->count > 0 ? arguments->at[0] : NULL;
}

/* Prints the help of a command; NULL: of the program. */
void program_command_print_help(const struct program_command *command, FILE *out);
