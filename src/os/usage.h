/* SPDX-License-Identifier: MIT
 *
 * What a process, this one or another, has taken of the machine: from /proc.
 */
#pragma once

#include "base/check.h"

#include <stdint.h>
#include <sys/types.h>

struct os_usage {
    uint64_t started; /* ticks since boot: tells it from a later process of this number */
    uint64_t user_ns, system_ns;                   /* of all its threads */
    uint64_t children_user_ns, children_system_ns; /* of children that it has waited for */
    uint64_t resident_bytes;                       /* what it shares with others counts in each */
    uint64_t files, files_limit; /* open descriptors; 0 where that may not be known */
};

/* 0, or -errno: there is no such process. A zombie is none. */
MUST_USE int os_usage_of(pid_t pid, struct os_usage *ret_usage);

struct os_usage_thread {
    pid_t id;
    uint64_t cpu_ns;
};

/* The first threads of a process, `most` of them. Returns how many there are of these. */
size_t os_usage_threads(pid_t pid, struct os_usage_thread *threads, size_t most);

/* Its `started`, or 0. */
uint64_t os_usage_started(pid_t pid);

/* The same of `user_ns` and `system_ns` alone, of the process, of all children and their children
 * that live, and of those that were waited for: what a server has taken with all its workers. */
MUST_USE int os_usage_of_family(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_system_ns);
