/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: finds a server's segment, reads it, and prints it. The server is
 * not asked. Shares of CPU time need two looks, which are a moment apart.
 */
#include "base/num.h"
#include "program/command.h"
#include "program/options.h"
#include "view/view.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { APART_MS = 200 }; /* two looks, for shares of the time between */

/* ---- which one ---- */

static struct stats_snapshot *take(const char *name)
{
    char why[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(name, why);
    if (!snapshot)
        fprintf(stderr, "weir: " STATS_FOLDER "%s %s\n", name, why);
    return snapshot;
}

static int take_pid(const char *argument, char name[STATS_NAME_MAX],
                    struct stats_snapshot **ret_snapshot)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    uint64_t pid;
    if (!num_parse_u64(span_text(argument), &pid) || pid == 0 || pid > INT_MAX) {
        fprintf(stderr, "weir: `%s` is not a process id\n", argument);
        return PROGRAM_USAGE;
    }
    if (stats_instances_find(geteuid(), (pid_t)pid, instances) == 0) {
        fprintf(stderr,
                "weir: process %s has no statistics: it is no weir, or serves with `stats = off`\n",
                argument);
        return PROGRAM_FAILED;
    }
    memcpy(name, instances[0].name, sizeof(instances[0].name));
    *ret_snapshot = take(name);
    return *ret_snapshot ? PROGRAM_OK : PROGRAM_FAILED;
}

/* Of those that run. What cannot be read is told only when there is nothing else. */
static int take_only(char name[STATS_NAME_MAX], struct stats_snapshot **ret_snapshot)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    char why[STATS_WHY_MAX], pids[256] = "";
    size_t found = stats_instances_find(geteuid(), 0, instances), len = 0;
    unsigned running = 0;
    for (size_t i = 0; i < found; i++) {
        struct stats_snapshot *snapshot = stats_snapshot_take(instances[i].name, why);
        if (snapshot && snapshot->running) {
            running++;
            if (len < sizeof(pids) - 16)
                len += (size_t)snprintf(pids + len, sizeof(pids) - len, "%s%d", len ? ", " : "",
                                        (int)instances[i].pid);
            stats_snapshot_free(*ret_snapshot);
            *ret_snapshot = snapshot;
            memcpy(name, instances[i].name, sizeof(instances[i].name));
        } else {
            stats_snapshot_free(snapshot);
        }
    }
    if (running == 1)
        return PROGRAM_OK;
    stats_snapshot_free(*ret_snapshot);
    *ret_snapshot = NULL;
    if (running > 1) {
        fprintf(stderr, "weir: %u servers run, choose one: weir stats PID, of %s\n", running, pids);
        return PROGRAM_USAGE;
    }
    if (found == 1) {
        struct stats_snapshot *dead = take(instances[0].name);
        if (dead)
            fprintf(stderr,
                    "weir: no server runs; one that has died left its counts: weir stats %d\n",
                    (int)instances[0].pid);
        stats_snapshot_free(dead);
        return PROGRAM_FAILED;
    }
    fprintf(stderr, "weir: no server of this user runs with statistics\n");
    return PROGRAM_FAILED;
}

/* ---- the command ---- */

static void print_view(const struct program_options *options, const struct view *view)
{
    if (options->json)
        view_print_json(view, stdout);
    else
        view_print_text(view, options->explain, stdout);
}

/* Takes `snapshot`, of the segment `name`. What is printed is the second look, if there is one. */
static void look_twice(const struct program_options *options, const char *name,
                       struct stats_snapshot *snapshot)
{
    char why[STATS_WHY_MAX];
    struct view first, second;
    view_init(&first, snapshot);
    snapshot = NULL;
    if (first.snapshot->running && poll(NULL, 0, APART_MS) == 0)
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

static int print(const struct program_options *options)
{
    struct stats_snapshot *snapshot = NULL;
    if (options->json + options->prometheus + options->openmetrics > 1) {
        fprintf(stderr, "weir: --json, --prometheus and --openmetrics are different answers; "
                        "choose one\n");
        return PROGRAM_USAGE;
    }
    char name[STATS_NAME_MAX];
    int status = options->argument ? take_pid(options->argument, name, &snapshot)
                                   : take_only(name, &snapshot);
    if (!snapshot)
        return status;
    if (options->prometheus || options->openmetrics) {
        struct view view;
        view_init(&view, snapshot);
        if (options->openmetrics)
            view_print_openmetrics(&view, stdout);
        else
            view_print_prometheus(&view, stdout);
        view_done(&view);
        return PROGRAM_OK;
    }
    look_twice(options, name, snapshot);
    return PROGRAM_OK;
}

int program_stats(const struct program_command *command, const char *const *arguments)
{
    struct program_options options;
    int status = PROGRAM_USAGE;
    switch (program_options_read(command, arguments, &options)) {
    case PROGRAM_OPTIONS_ANSWERED:
        status = PROGRAM_OK;
        break;
    case PROGRAM_OPTIONS_WRONG:
        break;
    case PROGRAM_OPTIONS_READ:
        status = print(&options);
        break;
    }
    program_options_done(&options);
    return status;
}
