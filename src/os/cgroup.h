/* SPDX-License-Identifier: MIT
 *
 * What the control groups of a process allow it: a container has its limits there, and shows the
 * machine's everywhere else. Those of version 2, with one hierarchy (cgroups(7)).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* CPUs whose time a process (0: this one) may use, a part of one counted whole; UINT64_MAX: as
 * many as there are. It is the least quota (cpu.max) of its group and of those above that show. */
uint64_t os_cgroup_cpus(pid_t pid);

/* How many processes and threads this process's groups may have (pids.max), the least of them;
 * UINT64_MAX: no limit. */
uint64_t os_cgroup_tasks(void);
