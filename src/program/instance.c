/* SPDX-License-Identifier: MIT */
#include "program/instance.h"

#include "base/num.h"

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

static int find_instance_of(const char *argument, struct stats_snapshot **ret_snapshot,
                            struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    uint64_t pid;
    if (!num_parse_u64(span_text(argument), &pid) || pid == 0 || pid > INT_MAX) {
        fprintf(stderr, "weir: `%s` is not a process id\n", argument);
        return PROGRAM_USAGE;
    }
    if (stats_snapshot_find_instance(geteuid(), (pid_t)pid, instances) == 0) {
        fprintf(
            stderr,
            "weir: process %s has no statistics; it is no weir server, or `stats = off` is set\n",
            argument);
        return PROGRAM_FAILED;
    }
    *ret_instance = instances[0];
    *ret_snapshot = take_or_report(ret_instance->name);
    return *ret_snapshot ? PROGRAM_OK : PROGRAM_FAILED;
}

/* The servers that run. */
struct running {
    unsigned count;
    struct stats_snapshot *newest;  /* of the one that started last; NULL: none runs */
    struct stats_instance instance; /* the segment of `newest` */
    char pids[256];                 /* of all, or of as many as fit */
};

static void add_running(struct running *running, struct stats_snapshot *snapshot,
                        const struct stats_instance *instance)
{
    size_t len = strlen(running->pids);
    running->count++;
    if (len < sizeof(running->pids) - 16)
        snprintf(running->pids + len, sizeof(running->pids) - len, "%s%d", len ? ", " : "",
                 (int)instance->pid);
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
    *running = (struct running){ 0 };
    for (size_t i = 0; i < found; i++) {
        struct stats_snapshot *snapshot = stats_snapshot_take(instances[i].name, why);
        if (snapshot && snapshot->running)
            add_running(running, snapshot, &instances[i]);
        else
            stats_snapshot_free(snapshot);
    }
}

/* A segment that cannot be read is reported only when there is no other. */
static int find_only_instance(const char *command, struct stats_snapshot **ret_snapshot,
                              struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    struct running running;
    size_t found = stats_snapshot_find_instance(geteuid(), 0, instances);
    find_running(&running, instances, found);
    if (running.count == 1) {
        *ret_snapshot = running.newest;
        *ret_instance = running.instance;
        return PROGRAM_OK;
    }
    stats_snapshot_free(running.newest);
    if (running.count > 1) {
        fprintf(stderr, "weir: %u servers run, with the process ids %s; choose one: weir %s PID\n",
                running.count, running.pids, command);
        return PROGRAM_USAGE;
    }
    if (found == 1) {
        struct stats_snapshot *dead = take_or_report(instances[0].name);
        if (dead)
            fprintf(stderr,
                    "weir: no server runs; the counts of one that died are left: weir %s %d\n",
                    command, (int)instances[0].pid);
        stats_snapshot_free(dead);
        return PROGRAM_FAILED;
    }
    fprintf(stderr, "weir: no server of this user runs with statistics\n");
    return PROGRAM_FAILED;
}

int program_instance_find(const char *command, const char *argument,
                          struct stats_snapshot **ret_snapshot, struct stats_instance *ret_instance)
{
    *ret_snapshot = NULL;
    return argument ? find_instance_of(argument, ret_snapshot, ret_instance)
                    : find_only_instance(command, ret_snapshot, ret_instance);
}

struct stats_snapshot *program_instance_newest(struct stats_instance *ret_instance)
{
    struct stats_instance instances[STATS_INSTANCES_MAX];
    struct running running;
    find_running(&running, instances, stats_snapshot_find_instance(geteuid(), 0, instances));
    if (running.newest)
        *ret_instance = running.instance;
    return running.newest;
}
