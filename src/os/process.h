/* SPDX-License-Identifier: MIT
 *
 * What a process is allowed, and who it is.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* CPUs that a process (0: this one) may use, at least 1: those that it may run on, or what its
 * control groups let it have of their time, a part of one counted whole, if that is less. */
unsigned os_process_cpus(pid_t pid);

enum { OS_PROCESS_LIMIT_MAX = 64 };

/* How many processes and threads there may be: the least of what the system, this process's
 * control group and, where `limited`, the user are allowed. `name` says which that is. */
uint64_t os_process_tasks(bool limited, char name[OS_PROCESS_LIMIT_MAX]);

/* Raises the limit of open files as far as it may go; returns the limit in force. */
size_t os_process_raise_files(void);

/* What `ps` and /proc/PID/comm show, at most 15 bytes. */
void os_process_name(const char *name);

/* Asks for `signal` when the parent dies; -ESRCH when `parent` is already gone. */
MUST_USE int os_process_end_with_parent(int signal, pid_t parent);

struct os_process_user {
    uid_t uid;
    gid_t gid;
};

/* Looks a user name up; 0 or -ENOENT. */
MUST_USE int os_process_find_user(const char *name, struct os_process_user *ret_user);

/* Becomes that user for good: supplementary groups, gid, uid, in this order, and
 * checks that there is no way back. 0 or -errno; after an error the process must
 * not go on. */
MUST_USE int os_process_become(const struct os_process_user *user, const char *name);
