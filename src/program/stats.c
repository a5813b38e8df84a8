/* SPDX-License-Identifier: MIT
 *
 * `weir stats`: finds a server's segment, reads it once, and prints it. The
 * server is not asked.
 */
#include "base/num.h"
#include "program/command.h"
#include "program/options.h"
#include "view/view.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- which one ---- */

static struct stats_snapshot *take(const char *name)
{
    char why[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(name, why);
    if (!snapshot)
        fprintf(stderr, "weir: " STATS_FOLDER "%s %s\n", name, why);
    return snapshot;
}

static int take_pid(const char *argument, struct stats_snapshot **ret_snapshot)
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
    *ret_snapshot = take(instances[0].name);
    return *ret_snapshot ? PROGRAM_OK : PROGRAM_FAILED;
}

/* Of those that run. What cannot be read is told only when there is nothing else. */
static int take_only(struct stats_snapshot **ret_snapshot)
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

static int print(const struct program_options *options)
{
    struct stats_snapshot *snapshot = NULL;
    if (options->json && options->prometheus) {
        fprintf(stderr, "weir: --json and --prometheus are two answers; choose one\n");
        return PROGRAM_USAGE;
    }
    int status = options->argument ? take_pid(options->argument, &snapshot) : take_only(&snapshot);
    if (!snapshot)
        return status;
    struct view view;
    view_init(&view, snapshot);
    if (options->json)
        view_print_json(&view, stdout);
    else if (options->prometheus)
        view_print_prometheus(&view, stdout);
    else
        view_print_text(&view, options->explain, stdout);
    view_done(&view);
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
