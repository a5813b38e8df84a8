/* SPDX-License-Identifier: MIT
 *
 * `weir help` and --help. Every list of options comes from the tables that read them.
 */
#include "option/help.h"

#include "base/nearest.h"
#include "program/command.h"
#include "program/configuration.h"

struct help_options {
    struct option_list command; /* one word, or two as in `load merge` */
};

static void print_overview(FILE *out)
{
    fprintf(out, "weir serves folders over HTTP.\n\nUsage:\n");
    option_help_column(out, (size_t)fprintf(out, "  weir DIR ..."), "the same as weir serve DIR");
    for (const struct program_command *const *at = program_commands; *at; at++) {
        const struct program_command *command = *at;
        if (strchr(command->options.name, ' '))
            continue; /* the help of its first word names it */
        int len = fprintf(out, "  weir %s%s%s", command->options.name, command->brief[0] ? " " : "",
                          command->brief);
        option_help_column(out, (size_t)len, command->sentence);
    }
    fprintf(out, "\n"
                 "Try:\n"
                 "  weir .                      this folder, on http://127.0.0.1:8080/\n"
                 "  weir help serve             every setting\n"
                 "\n"
                 "Manual: weir(1), weir-load(1), weir-top(1), weir-trace(1), weir.conf(5)\n");
}

void program_command_print_help(const struct program_command *command, FILE *out)
{
    if (!command || command == &program_help) {
        print_overview(out);
        return;
    }
    fprintf(out, "Usage: weir %s%s%s\n\n%s", command->options.name, command->usage[0] ? " " : "",
            command->usage, command->text);
    option_help_groups(out, command->options.groups);
}

static int run_help(void *given, const char *const *words)
{
    (void)words;
    const struct option_list *command = &((const struct help_options *)given)->command;
    if (command->count == 0) {
        program_command_print_help(NULL, stdout);
        return PROGRAM_OK;
    }
    size_t taken;
    const char *second = command->count > 1 ? command->at[1] : NULL;
    const struct program_command *subject = program_command_find(command->at[0], second, &taken);
    if (subject && taken < command->count) {
        fprintf(stderr, "weir: `%s` is one argument too many; see `weir help %s`\n",
                command->at[taken], subject->options.name);
        return PROGRAM_USAGE;
    }
    if (subject) {
        program_command_print_help(subject, stdout);
        return PROGRAM_OK;
    }
    struct nearest nearest = nearest_to(span_text(command->at[0]));
    for (const struct program_command *const *at = program_commands; *at; at++)
        nearest_offer(&nearest, (*at)->options.name);
    fprintf(stderr, "weir: there is no command `%s`%s%s%s\n", command->at[0],
            nearest.best ? "; did you mean `" : "; see `weir help",
            nearest.best ? nearest.best : "", nearest.best ? "`?" : "`");
    return PROGRAM_USAGE;
}

static const struct option_group help_groups[] = {
    { .title = "Options", .options = option_answers },
    { .options = NULL },
};

const struct program_command program_help = {
    .options = { .name = "help",
                 .groups = help_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct help_options, command),
                 .arguments_most = 2 },
    .brief = "[COMMAND]",
    .usage = "[COMMAND]",
    .sentence = "explain a command",
    .text = "",
    .size = sizeof(struct help_options),
    .run = run_help,
};
