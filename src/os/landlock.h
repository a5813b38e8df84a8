/* SPDX-License-Identifier: MIT
 *
 * Landlock (landlock(7)): a process gives up access to files and to the network, for good. A rule
 * is about a folder that exists when the rule is made, not about its name.
 *
 * Before level 8 the restriction holds for the calling thread, and for the threads and processes
 * that this thread starts later. Therefore a process restricts itself while it has one thread.
 *
 * Descriptors that are open already stay as they are.
 */
#pragma once

#include "base/check.h"

struct os_landlock {
    int fd;    /* of the rules, until os_landlock_enforce or os_landlock_drop */
    int level; /* see os_landlock_level */
};

enum {
    OS_LANDLOCK_TCP = 4,   /* the first level that refuses TCP bind and connect */
    OS_LANDLOCK_SCOPES = 6 /* the first level that refuses signals to processes outside */
};

/* The level of Landlock on this kernel, at least 1. -ENOSYS: the kernel is older than Linux 5.13,
 * or a filter hides the calls. -EOPNOTSUPP: Landlock is switched off at boot. -EPERM: a filter
 * forbids the calls. */
int os_landlock_level(void);

/* Starts a set of rules that allows nothing which the level of this kernel can refuse. 0 or -errno,
 * as os_landlock_level returns it. */
MUST_USE int os_landlock_begin(struct os_landlock *rules);

/* Allows to read the files below a folder, and to list the folders there. 0 or -errno. */
MUST_USE int os_landlock_allow_reading(const struct os_landlock *rules, const char *folder);

/* Allows reading below a folder that is open. This user may be unable to follow its path. */
MUST_USE int os_landlock_allow_open(const struct os_landlock *rules, int directory_fd);

/* Puts the rules in force, and closes them. The process has no_new_privs, or CAP_SYS_ADMIN. 0 or
 * -errno. */
MUST_USE int os_landlock_enforce(struct os_landlock *rules);

/* Closes rules that are not needed any more. Accepts rules that are closed. */
void os_landlock_drop(struct os_landlock *rules);
