/* SPDX-License-Identifier: MIT */
#include "os/process.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CPUS_MAX = 4096 };

unsigned os_process_cpus(pid_t pid)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    if (!set)
        return 1;
    int count = sched_getaffinity(pid, size, set) == 0 ? CPU_COUNT_S(size, set) : 1;
    CPU_FREE(set);
    return count > 0 ? (unsigned)count : 1;
}

size_t os_process_raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 256;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    return (size_t)(setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before);
}

void os_process_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name); /* without it, it goes by another */
}

int os_process_end_with_parent(int signal, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, signal) < 0)
        return -errno;
    return getppid() == parent ? 0 : -ESRCH;
}

int os_process_find_user(const char *name, struct os_process_user *ret_user)
{
    const struct passwd *entry = getpwnam(name);
    if (!entry)
        return -ENOENT;
    *ret_user = (struct os_process_user){ entry->pw_uid, entry->pw_gid };
    return 0;
}

int os_process_become(const struct os_process_user *user, const char *name)
{
    if (initgroups(name, user->gid) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
        setresuid(user->uid, user->uid, user->uid) < 0)
        return -errno;
    if (user->uid != 0 && (setuid(0) == 0 || seteuid(0) == 0))
        return -EPERM;
    return 0;
}
