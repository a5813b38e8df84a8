/* SPDX-License-Identifier: MIT
 *
 * `weir reload`: has a running server read its configuration anew, and says how
 * that went.
 */
#include "program/control.h"

static int reload(const struct program_command *command, const struct program_options *options)
{
    struct program_master master;
    int status = program_control_find(command->name, options, &master);
    if (status != PROGRAM_OK)
        return status;
    switch (program_control_ask(&master, "reload")) {
    case PROGRAM_CONTROL_OK:
        printf("weir: process %d serves the new configuration\n", (int)master.pid);
        return PROGRAM_OK;
    case PROGRAM_CONTROL_FAILED:
        fprintf(stderr, "weir: process %d goes on with the old configuration\n", (int)master.pid);
        return PROGRAM_FAILED;
    case PROGRAM_CONTROL_CUT:
        break;
    }
    fprintf(stderr, "weir: process %d ended the connection without an answer; see its error log\n",
            (int)master.pid);
    return PROGRAM_FAILED;
}

int program_reload(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, reload);
}
