/* SPDX-License-Identifier: MIT
 *
 * `weir reload`: makes a running server read its configuration again, and reports the result.
 */
#include "program/command.h"
#include "program/configuration.h"
#include "program/control.h"

struct reload_options {
    const char *control; /* or NULL */
    struct option_list pid;
};

static const struct option reload_rows[] = {
    { "control", 0, "PATH", PROGRAM_CONTROL_SENTENCE, OPTION_TEXT,
      OPTION_INTO(reload_options, control) },
    { .name = NULL },
};

static const struct option_group reload_groups[] = {
    { .title = "Options", .options = reload_rows },
    { .options = option_answers },
    { .options = NULL },
};

static int run_reload(void *given, const char *const *words)
{
    (void)words;
    const struct reload_options *options = given;
    struct program_master master;
    int status = program_control_find("reload", options->control,
                                      program_command_argument(&options->pid), &master);
    if (status != PROGRAM_OK)
        return status;
    switch (program_control_ask(&master, "reload")) {
    case PROGRAM_CONTROL_OK:
        printf("weir: process %d serves the new configuration\n", (int)master.pid);
        return PROGRAM_OK;
    case PROGRAM_CONTROL_FAILED:
        fprintf(stderr, "weir: process %d keeps the old configuration\n", (int)master.pid);
        return PROGRAM_FAILED;
    case PROGRAM_CONTROL_CUT:
        break;
    }
    fprintf(stderr, "weir: process %d ended the connection without an answer; see its error log\n",
            (int)master.pid);
    return PROGRAM_FAILED;
}

const struct program_command program_reload = {
    .options = { .name = "reload",
                 .groups = reload_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct reload_options, pid),
                 .arguments_most = 1 },
    .brief = "[PID]",
    .usage = "[--control PATH] [PID]",
    .sentence = "make a running server read its configuration again",
    .text = "The server tests the configuration first. When it is good, new workers serve\n"
            "with it, and the old workers finish their answers; no connection is refused\n"
            "meanwhile. When it is not good, its errors are printed here, as `weir check`\n"
            "prints them, and the server keeps the old configuration.\n"
            "\n"
            "Without PID it is the one server that this user runs. Exit status: 0 once the\n"
            "new configuration is in force, 1 when it is not, 2 when the command line is\n"
            "wrong or several servers run.\n"
            "\n"
            "Examples:\n"
            "  weir reload                          the server that I run\n"
            "  weir reload 4711                     the one with this process id\n"
            "  weir reload --control /run/w.sock    the one with `control = /run/w.sock`\n",
    .size = sizeof(struct reload_options),
    .run = run_reload,
};
