/* SPDX-License-Identifier: MIT */
#include "program/instance.h"

#include "base/escape.h"
#include "base/num.h"
#include "view/view.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static struct stats_snapshot *take_or_report(const char *name)
{
    char why[STATS_WHY_MAX];
    struct stats_snapshot *snapshot = stats_snapshot_take(name, why);
    if (!snapshot)
        fprintf(stderr, "weir: " STATS_FOLDER "%s %s\n", name, why);
    return snapshot;
}

static enum program_instance_found find_instance_of(const char *argument,
                                                    struct stats_snapshot **ret_snapshot,
                                                    struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    uint64_t pid;
    if (!num_parse_u64(span_text(argument), &pid) || pid == 0 || pid > INT_MAX) {
        fprintf(stderr, "weir: `%s` is not a process id\n", argument);
        return PROGRAM_INSTANCE_MISNAMED;
    }
    if (stats_snapshot_find_instance(geteuid(), (pid_t)pid, instances) == 0) {
        fprintf(
            stderr,
            "weir: process %s has no statistics; it is no weir server, or `stats = off` is set\n",
            argument);
        return PROGRAM_INSTANCE_NONE;
    }
    *ret_instance = instances[0];
    *ret_snapshot = take_or_report(ret_instance->name);
    return *ret_snapshot ? PROGRAM_INSTANCE_ONE : PROGRAM_INSTANCE_UNREADABLE;
}

/* The servers that run. */
struct running {
    unsigned count;
    struct stats_snapshot *newest;  /* of the one that started last; NULL: none runs */
    struct stats_instance instance; /* the segment of `newest` */
    FILE *list;                     /* a line for each is printed here; NULL: none */
};

/* "  4711  percore  http://127.0.0.1:8080/ http://[::1]:8080/". */
static void list_server(const struct stats_snapshot *snapshot, FILE *out)
{
    const struct stats_generation *serving =
        &snapshot->generations[snapshot->generation % STATS_GENERATIONS_MAX];
    fprintf(out, "%8d  %-8s", (int)snapshot->master, serving->model);
    for (struct span rest = span_text(serving->urls), url; view_next_url(&rest, &url);) {
        char text[STATS_URLS_MAX * 4];
        text[escape_text(text, sizeof(text) - 1, url, ESCAPE_TEXT)] = '\0';
        fprintf(out, " %s", text);
    }
    fputc('\n', out);
}

static void add_running(struct running *running, struct stats_snapshot *snapshot,
                        const struct stats_instance *instance)
{
    running->count++;
    if (running->list)
        list_server(snapshot, running->list);
    if (running->newest && running->newest->started_s > snapshot->started_s) {
        stats_snapshot_free(snapshot);
        return;
    }
    stats_snapshot_free(running->newest);
    running->newest = snapshot;
    running->instance = *instance;
}

static void find_running(struct running *running, const struct stats_instance *instances,
                         size_t found)
{
    char why[STATS_WHY_MAX];
    for (size_t i = 0; i < found; i++) {
        struct stats_snapshot *snapshot = stats_snapshot_take(instances[i].name, why);
        if (snapshot && snapshot->running)
            add_running(running, snapshot, &instances[i]);
        else
            stats_snapshot_free(snapshot);
    }
}

/* A segment that cannot be read is reported only when there is no other. */
static enum program_instance_found find_only_instance(const char *command,
                                                      struct stats_snapshot **ret_snapshot,
                                                      struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    struct running running = { 0 };
    size_t found = stats_snapshot_find_instance(geteuid(), 0, instances);
    find_running(&running, instances, found);
    if (running.count == 1) {
        *ret_snapshot = running.newest;
        *ret_instance = running.instance;
        return PROGRAM_INSTANCE_ONE;
    }
    stats_snapshot_free(running.newest);
    if (running.count > 1) {
        fprintf(stderr, "weir: %u servers run; choose one by its process id: weir %s PID\n",
                running.count, command);
        program_instance_list(stderr);
        return PROGRAM_INSTANCE_SEVERAL;
    }
    if (found == 1) {
        struct stats_snapshot *dead = take_or_report(instances[0].name);
        if (dead)
            fprintf(stderr,
                    "weir: no server runs; the counts of one that died are left: weir %s %d\n",
                    command, (int)instances[0].pid);
        stats_snapshot_free(dead);
        return dead ? PROGRAM_INSTANCE_NONE : PROGRAM_INSTANCE_UNREADABLE;
    }
    fprintf(stderr, "weir: no server of this user runs with statistics\n");
    return PROGRAM_INSTANCE_NONE;
}

unsigned program_instance_list(FILE *out)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    struct running running = { .list = out };
    find_running(&running, instances, stats_snapshot_find_instance(geteuid(), 0, instances));
    stats_snapshot_free(running.newest);
    return running.count;
}

enum program_instance_found program_instance_find(const char *command, const char *argument,
                                                  struct stats_snapshot **ret_snapshot,
                                                  struct stats_instance *ret_instance)
{
    *ret_snapshot = NULL;
    return argument ? find_instance_of(argument, ret_snapshot, ret_instance)
                    : find_only_instance(command, ret_snapshot, ret_instance);
}

struct stats_snapshot *program_instance_newest(struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    struct running running = { 0 };
    find_running(&running, instances, stats_snapshot_find_instance(geteuid(), 0, instances));
    if (running.newest)
        *ret_instance = running.instance;
    return running.newest;
}
