/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: finds a server's segment, reads it, and prints it. The server is
 * not asked. Shares of CPU time need two looks, which are a moment apart.
 */
#include "program/command.h"
#include "program/instance.h"
#include "program/options.h"
#include "view/view.h"

#include <poll.h>

enum { APART_MS = 200 }; /* two looks, for shares of the time between */

static void print_view(const struct program_options *options, const struct view *view)
{
    if (options->json)
        view_print_json(view, stdout);
    else if (options->prometheus)
        view_print_prometheus(view, stdout);
    else if (options->openmetrics)
        view_print_openmetrics(view, stdout);
    else
        view_print_text(view, options->explain, stdout);
}

/* Takes `snapshot`, of the segment `name`. People get a second look, which tells what workers do
 * now; programs, which may ask often, are not kept waiting. */
static void look(const struct program_options *options, const char *name,
                 struct stats_snapshot *snapshot)
{
    char why[STATS_WHY_MAX];
    struct view first, second;
    view_init(&first, snapshot);
    snapshot = NULL;
    bool for_people = !options->json && !options->prometheus && !options->openmetrics;
    if (for_people && first.snapshot->running && poll(NULL, 0, APART_MS) == 0)
        snapshot = stats_snapshot_take(name, why);
    if (snapshot) {
        view_init(&second, snapshot);
        second.before = &first;
    }
    print_view(options, snapshot ? &second : &first);
    if (snapshot)
        view_done(&second);
    view_done(&first);
}

static int print(const struct program_command *command, const struct program_options *options)
{
    struct stats_snapshot *snapshot;
    struct stats_instance instance;
    if (options->json + options->prometheus + options->openmetrics > 1) {
        fprintf(stderr, "weir: --json, --prometheus and --openmetrics are different answers; "
                        "choose one\n");
        return PROGRAM_USAGE;
    }
    int status = program_instance_find(command, options->argument, &snapshot, &instance);
    if (!snapshot)
        return status;
    look(options, instance.name, snapshot);
    return PROGRAM_OK;
}

int program_stats(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, print);
}
