/* SPDX-License-Identifier: MIT
 *
 * The limits of a process, and its user.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How many CPUs a process (0: this one) may use, at least 1: its affinity, or the quota of its
 * control groups (rounded up) if that is less. */
unsigned os_process_cpus(pid_t pid);

enum { OS_PROCESS_LIMIT_MAX = 64 };

/* How many processes and threads there can be: the smallest limit of the system, of this process's
 * control group and, if `limited`, of the user. `name` gets the name of that limit. */
uint64_t os_process_tasks(bool limited, char name[OS_PROCESS_LIMIT_MAX]);

/* Tables of a process have an element for each descriptor: more descriptors than this are not used.
 * It is the most that Linux allows by default (fs.nr_open). */
enum { OS_PROCESS_FILES_MAX = 1024 * 1024 };

/* Opens /dev/null for each of standard input, output and error that is closed, so that no file or
 * connection gets its number. Reading or writing there fails with EBADF, as if it were closed. 0 or
 * -errno. Call it before anything else is opened. */
MUST_USE int os_process_hold_standard(void);

/* Closes `fd`. If it is standard input, output or error, /dev/null has its number at once: at no
 * time is the number free. 0 or -errno of /dev/null. */
MUST_USE int os_process_close(int fd);

/* Has the kernel report children that end, and keep them until they are waited for. A process that
 * was started with SIGCHLD ignored inherits that, and the kernel then does neither. 0 or -errno.
 * Call it before the first child is made. */
MUST_USE int os_process_keep_children(void);

/* Raises the soft limit of open files to the hard limit, or changes it to OS_PROCESS_FILES_MAX if
 * that is less. Returns the limit in force, OS_PROCESS_FILES_MAX at most. */
size_t os_process_raise_files(void);

/* Makes the kernel's table of open files of this process large enough for `count` descriptors, or
 * 65,536 (512 KiB) if that is less. When it grows in a process with several threads, the thread
 * that opens a file waits until each CPU has switched tasks (synchronize_rcu), for 5 to 20 ms. So
 * call it before the first thread starts. */
void os_process_reserve_files(size_t count);

/* Lets the threads of this process allocate from `count` heaps at most, the first one included.
 * glibc makes one for each thread, up to 8 for each CPU, and a heap keeps what its threads once
 * needed at the same time. Call it before the first thread starts. */
void os_process_limit_heaps(unsigned count);

/* From now on a large block is given back to the kernel when it is freed. By default glibc keeps as
 * much memory as the largest freed block had, up to 32 MiB. */
void os_process_return_large_blocks(void);

/* Gives unused memory of all heaps back to the kernel. It takes milliseconds, in which other
 * threads may wait for a heap. */
void os_process_trim_heaps(void);

/* From now on the kernel writes no memory of this process to a disk when the process crashes, and
 * gives none to a program that stores it. 0 or -errno. */
MUST_USE int os_process_forbid_core(void);

/* Sets the name that `ps` and /proc/PID/comm show, at most 15 bytes. */
void os_process_name(const char *name);

/* Gives the calling thread the lowest priority of ordinary threads (nice 19), for good. */
void os_process_lower_priority(void);

/* Whether a process has this id, also one of another user. False for 0 and less. */
bool os_process_exists(pid_t pid);

/* Requests `signal` for the death of the parent. -ESRCH: `parent` is gone already. */
MUST_USE int os_process_end_with_parent(int signal, pid_t parent);

struct os_process_user {
    uid_t uid;
    gid_t gid;
};

/* Finds a user by name; 0 or -ENOENT. `nobody` has the user id 65534 on a system without users. */
MUST_USE int os_process_find_user(const char *name, struct os_process_user *ret_user);

enum { OS_PROCESS_USER_MAX = 40 };

/* The name of the user of this process, or the number if the user has no name. */
void os_process_user_name(char out[OS_PROCESS_USER_MAX]);

/* Whether this process may change to that user: it has the capabilities, and its user namespace has
 * the user. */
bool os_process_can_become(const struct os_process_user *user);

/* Changes to that user permanently: supplementary groups, gid, uid, in this order. Then it checks
 * that the change cannot be undone. 0 or -errno; after an error the process must end. */
MUST_USE int os_process_become(const struct os_process_user *user, const char *name);
