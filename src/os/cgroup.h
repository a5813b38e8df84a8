/* SPDX-License-Identifier: MIT
 *
 * The limits of a process's control groups, version 2 with one hierarchy (cgroups(7)). A container
 * has its limits there; /proc shows those of the machine.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* How many CPUs' time a process (0: this one) may use, rounded up; UINT64_MAX: no limit. It is the
 * smallest quota (cpu.max) of its group and of the visible groups above. */
uint64_t os_cgroup_cpus(pid_t pid);

/* How many processes and threads this process's groups may have (the smallest pids.max);
 * UINT64_MAX: no limit. */
uint64_t os_cgroup_tasks(void);
