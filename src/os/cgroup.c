/* SPDX-License-Identifier: MIT */
#include "os/cgroup.h"

#include "base/num.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOUNTED "/sys/fs/cgroup"

enum { TEXT_MAX = 64, GROUP_MAX = 1024 };

static bool read_group_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

/* The path of a process's group below the mount, without the last slash: "" for its root. */
static bool find_group(pid_t pid, char group[GROUP_MAX])
{
    char path[32] = "/proc/self/cgroup", text[GROUP_MAX];
    if (pid > 0)
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (!read_group_file(path, text, sizeof(text)))
        return false;
    const char *line = strstr(text, "0::/");
    if (!line)
        return false;
    line += strlen("0::");
    size_t len = strcspn(line, "\n");
    snprintf(group, GROUP_MAX, "%.*s", (int)(len > 1 ? len : 0), line);
    return true;
}

/* The number before the next space; UINT64_MAX: no number ("max"). */
static uint64_t first_number(const char *text)
{
    uint64_t number;
    struct span word = span_first(span_text(text), strcspn(text, " \n"));
    return num_parse_u64(word, &number) ? number : UINT64_MAX;
}

/* The smallest value that `reckon` reads from `file` in the group and in all groups above. A
 * container may show its own group as the root, under any path: a missing file means no limit. */
static uint64_t least_in_groups(pid_t pid, const char *file, uint64_t (*reckon)(const char *text))
{
    char group[GROUP_MAX], path[GROUP_MAX + 64], text[TEXT_MAX];
    uint64_t most = UINT64_MAX;
    if (!find_group(pid, group))
        return most;
    for (;;) {
        snprintf(path, sizeof(path), MOUNTED "%s/%s", group, file);
        uint64_t its = read_group_file(path, text, sizeof(text)) ? reckon(text) : UINT64_MAX;
        most = its < most ? its : most;
        char *last = strrchr(group, '/');
        if (!last)
            return most;
        *last = '\0';
    }
}

/* "QUOTA PERIOD", both in microseconds. */
static uint64_t cpus_of(const char *text)
{
    const char *space = strchr(text, ' ');
    uint64_t quota = first_number(text), period = space ? first_number(space + 1) : 0;
    if (quota == UINT64_MAX || period == UINT64_MAX || period == 0)
        return UINT64_MAX;
    return quota / period + (quota % period > 0);
}

uint64_t os_cgroup_cpus(pid_t pid)
{
    return least_in_groups(pid, "cpu.max", cpus_of);
}

uint64_t os_cgroup_tasks(void)
{
    return least_in_groups(0, "pids.max", first_number);
}
