/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: finds the segment of a server, takes a snapshot, and prints it. The server
 * takes no part.
 */
#include "program/command.h"
#include "program/configuration.h"
#include "program/instance.h"
#include "view/view.h"

#include <poll.h>

/* Shares of CPU time need two snapshots, this far apart. */
enum { APART_MS = 200 };

struct stats_options {
    bool json, prometheus, openmetrics, explain;
    struct option_list pid;
};

static const struct option stats_rows[] = {
    { "json", 0, NULL, "print one JSON object", OPTION_PRESENT, OPTION_INTO(stats_options, json) },
    { "prometheus", 0, NULL, "print Prometheus's text format", OPTION_PRESENT,
      OPTION_INTO(stats_options, prometheus) },
    { "openmetrics", 0, NULL, "print OpenMetrics 1.0", OPTION_PRESENT,
      OPTION_INTO(stats_options, openmetrics) },
    { "explain", 0, NULL, "say what each number means", OPTION_PRESENT,
      OPTION_INTO(stats_options, explain) },
    { .name = NULL },
};

static const struct option_group stats_groups[] = {
    { .title = "Options", .options = stats_rows },
    { .options = option_answers },
    { .options = NULL },
};

static void print_view(const struct stats_options *options, const struct view *view)
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

/* Takes `snapshot`, of the segment `name`. The table for people needs a second snapshot, for what
 * the workers do now. The forms for programs, which may read often, do without the wait. */
static void print_snapshot(const struct stats_options *options, const char *name,
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

static int run_stats(void *given, const char *const *words)
{
    (void)words;
    const struct stats_options *options = given;
    struct stats_snapshot *snapshot;
    struct stats_instance instance;
    if (options->json + options->prometheus + options->openmetrics > 1) {
        fprintf(stderr, "weir: --json, --prometheus and --openmetrics are different answers; "
                        "choose one\n");
        return PROGRAM_USAGE;
    }
    int status = program_instance_find("stats", program_command_argument(&options->pid), &snapshot,
                                       &instance);
    if (!snapshot)
        return status;
    print_snapshot(options, instance.name, snapshot);
    return PROGRAM_OK;
}

const struct program_command program_stats = {
    .options = { .name = "stats",
                 .groups = stats_groups,
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct stats_options, pid),
                 .arguments_most = 1 },
    .brief = "[PID]",
    .usage = "[--json|--prometheus|--openmetrics] [--explain] [PID]",
    .sentence = "print what a running server has counted",
    .text = "Requests, connections, cache and response times since the server started, in all\n"
            "its workers, those that have ended too. The command reads the shared memory of\n"
            "the server, so it works when the server hangs or was killed.\n"
            "\n"
            "Without PID it is the one server that this user runs. Exit status: 0 when there\n"
            "are numbers, 1 when there are none or they cannot be read, 2 when several\n"
            "servers run.\n"
            "\n"
            "Examples:\n"
            "  weir stats                           the server that I run\n"
            "  weir stats --explain                 and what each number means\n"
            "  weir stats --json 4711               the one with this process id, as JSON\n",
    .size = sizeof(struct stats_options),
    .run = run_stats,
};
