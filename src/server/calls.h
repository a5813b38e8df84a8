/* SPDX-License-Identifier: MIT
 *
 * The filter of system calls (seccomp(2), through libseccomp). A process keeps the calls that it
 * uses, and server/syscalls.def lists them. Every other call does nothing and returns ENOSYS, as on
 * a kernel without the call. Then the C library takes another way where it has one.
 *
 * A refused call is counted (calls_refused), and the first of each number is logged. The kernel
 * raises SIGSYS in the thread, and the handler sets the result of the call.
 *
 * The filter looks at numbers, and at few arguments. It sees no path and no memory. Files are the
 * matter of Landlock (server/sandbox.h).
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <sys/types.h>

struct model;
struct stats_writer;

/* Groups of calls. A process has a set of them. */
enum server_calls_group {
    CALLS_ALL = 1 << 0,
    CALLS_ACCEPT = 1 << 1,    /* it accepts connections */
    CALLS_PASSED = 1 << 2,    /* it receives connections from the master */
    CALLS_READINESS = 1 << 3, /* its threads wait with epoll */
    CALLS_BLOCKING = 1 << 4,  /* a thread or a process serves one connection at a time */
    CALLS_RING = 1 << 5,      /* its threads wait for completions of an io_uring */
    CALLS_THREADS = 1 << 6,   /* it starts threads */
    CALLS_PROCESSES = 1 << 7, /* it starts processes */
    CALLS_SERVING = 1 << 8,   /* a worker, of any model */
    CALLS_PAGE = 1 << 9,      /* the process of the statistics page */
    CALLS_LOOPS = 1 << 10     /* a thread serves many connections at a time, in a loop */
};

/* The groups of a worker of `model`. `ring`: it has io_urings. */
unsigned server_calls_of_model(const struct model *model, bool ring);

/* Restricts this process, which has one thread and no_new_privs, to the calls of these groups. It
 * sends no signal to `master`. Counts refused calls with `stats` (NULL: only logs them), which is
 * borrowed until the process ends. 0 or -errno. */
MUST_USE int server_calls_restrict(unsigned groups, pid_t master, const struct stats_writer *stats);

/* Whether this kernel has filters of system calls: 0 or -errno. */
int server_calls_possible(void);
