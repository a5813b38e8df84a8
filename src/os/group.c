/* SPDX-License-Identifier: MIT */
#include "os/group.h"

#include "base/num.h"
#include "os/file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MOUNTED "/sys/fs/cgroup"

enum { GROUP_MAX = 1024, TEXT_MAX = 4096 };

/* Whether a line ID:CONTROLLER[,CONTROLLER]...:/PATH is of this hierarchy. *ret_path: its path. */
static bool is_hierarchy(struct span line, const char *controller, struct span *ret_path)
{
    const char *first = memchr(line.at, ':', line.len);
    if (!first)
        return false;
    struct span rest = span_skip(line, (size_t)(first + 1 - line.at));
    const char *second = memchr(rest.at, ':', rest.len);
    if (!second)
        return false;
    struct span names = span_first(rest, (size_t)(second - rest.at));
    *ret_path = span_skip(rest, names.len + 1);
    if (!controller)
        return names.len == 0;
    while (names.len > 0) {
        const char *comma = memchr(names.at, ',', names.len);
        struct span name = span_first(names, comma ? (size_t)(comma - names.at) : names.len);
        if (span_equal(name, span_text(controller)))
            return true;
        names = span_skip(names, comma ? name.len + 1 : name.len);
    }
    return false;
}

/* The path of a process's group below the mount, without the last slash: "" for its root. */
static bool find_group(const char *root, pid_t pid, const char *controller, char group[GROUP_MAX])
{
    char path[PATH_MAX], text[TEXT_MAX], process[16] = "self";
    if (pid > 0)
        (void)snprintf(process, sizeof(process), "%d", (int)pid);
    (void)snprintf(path, sizeof(path), "%s/proc/%s/cgroup", root, process);
    if (!os_file_read_text(path, text, sizeof(text)))
        return false;
    struct span found = { 0 };
    for (const char *at = text; *at;) {
        const struct span line = span_of(at, strcspn(at, "\n"));
        if (is_hierarchy(line, controller, &found))
            break;
        found = span_of(NULL, 0);
        at += line.len + (at[line.len] == '\n');
    }
    if (found.len == 0 || found.len >= GROUP_MAX)
        return false;
    (void)snprintf(group, GROUP_MAX, "%.*s", (int)(found.len > 1 ? found.len : 0), found.at);
    return true;
}

uint64_t os_group_number(const char *text)
{
    uint64_t number;
    struct span word = span_first(span_text(text), strcspn(text, " \n"));
    return num_parse_u64(word, &number) ? number : UINT64_MAX;
}

/* A container may show its own group as the root, under any path: a missing file means no limit. */
uint64_t os_group_least(const char *root, pid_t pid, const char *controller, const char *file,
                        uint64_t (*reckon)(const char *text))
{
    char group[GROUP_MAX], path[PATH_MAX], text[64];
    uint64_t most = UINT64_MAX;
    if (!find_group(root, pid, controller, group))
        return most;
    for (;;) {
        (void)snprintf(path, sizeof(path), "%s" MOUNTED "/%s%s/%s", root,
                       controller ? controller : "", group, file);
        uint64_t its = os_file_read_text(path, text, sizeof(text)) ? reckon(text) : UINT64_MAX;
        most = its < most ? its : most;
        char *last = strrchr(group, '/');
        if (!last)
            return most;
        *last = '\0';
    }
}

/* MemTotal of /proc/meminfo; 0: unknown. */
static uint64_t machine_bytes(const char *root)
{
    char path[PATH_MAX], text[TEXT_MAX];
    (void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (!os_file_read_text(path, text, sizeof(text)))
        return 0;
    const char *line = strstr(text, "MemTotal:");
    if (!line)
        return 0;
    line += strlen("MemTotal:");
    const uint64_t kib = os_group_number(line + strspn(line, " "));
    return kib <= UINT64_MAX / 1024 ? kib * 1024 : 0;
}

struct os_group_memory os_group_memory(const char *root)
{
    static const struct {
        const char *controller, *file;
    } limits[] = {
        { NULL, "memory.max" },
        { NULL, "memory.high" }, /* above it the kernel slows the group down */
        { "memory", "memory.limit_in_bytes" },
    };
    struct os_group_memory memory = { .bytes = machine_bytes(root) };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const uint64_t most =
            os_group_least(root, 0, limits[i].controller, limits[i].file, os_group_number);
        /* Version 1 writes a number above all memory in place of `max`. */
        if (most < (memory.bytes > 0 ? memory.bytes : INT64_MAX / 2))
            memory = (struct os_group_memory){ .bytes = most, .of_group = true };
    }
    return memory;
}
