/* SPDX-License-Identifier: MIT
 *
 * The resources that a process, this one or another, uses: read from /proc.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct os_usage {
    uint64_t started; /* ticks since boot: distinguishes it from a later process with the same id */
    uint64_t user_ns, system_ns;                   /* of all its threads */
    uint64_t children_user_ns, children_system_ns; /* of children that it has waited for */
    uint64_t resident_bytes;                       /* shared memory counts in each process */
    uint64_t files, files_limit; /* open descriptors; 0: no permission to read them */
};

/* 0, or -errno: there is no such process. A zombie counts as none. */
MUST_USE int os_usage_of(pid_t pid, struct os_usage *ret_usage);

struct os_usage_thread {
    pid_t id;
    uint64_t cpu_ns;
};

/* Lists at most `most` threads of a process. Returns how many were written. */
size_t os_usage_threads(pid_t pid, struct os_usage_thread *threads, size_t most);

/* Whether the first thread of a process that was not reaped has ended. Others may be left. */
bool os_usage_has_ended(pid_t pid);

/* A thread that waits in the kernel, where no signal ends the wait (state D). */
struct os_usage_stuck {
    pid_t thread;
    char where[48]; /* the kernel's function; empty: no permission to read it */
};

/* Whether such a thread of the process is found. */
bool os_usage_find_stuck(pid_t pid, struct os_usage_stuck *ret_stuck);

/* Whether the process exists and has this effective user. */
bool os_usage_is_of_user(pid_t pid, uid_t user);

/* Its `started`, or 0. */
uint64_t os_usage_started(pid_t pid);

/* The CPU time of a process and all its descendants, living or waited for: of a server with all its
 * workers. 0 or -errno. */
MUST_USE int os_usage_of_family(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_system_ns);
