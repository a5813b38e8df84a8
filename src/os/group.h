/* SPDX-License-Identifier: MIT
 *
 * The limits of control groups (cgroups(7)), and the memory that a process may use. A container has
 * its limits there. /proc shows those of the machine.
 *
 * `root` is "", or the folder of another tree with `proc` and `sys/fs/cgroup`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The smallest value that `reckon` reads from `file` in the group of a process (0: this one) and in
 * the visible groups above it. UINT64_MAX: no limit. `controller` is the name of a hierarchy of
 * version 1, mounted under this name. NULL is version 2. */
uint64_t os_group_least(const char *root, pid_t pid, const char *controller, const char *file,
                        uint64_t (*reckon)(const char *text));

/* The number before the first space or the end of the line. UINT64_MAX: no number (`max`). */
uint64_t os_group_number(const char *text);

struct os_group_memory {
    uint64_t bytes; /* 0: unknown */
    bool of_group;  /* the limit of a control group; else the memory of the machine */
};

/* The memory that this process and those of its groups may use together. */
struct os_group_memory os_group_memory(const char *root);
