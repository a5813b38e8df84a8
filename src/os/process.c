/* SPDX-License-Identifier: MIT */
#include "os/process.h"

#include "base/num.h"
#include "os/file.h"
#include "os/group.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- limits of control groups ---- */

/* "QUOTA PERIOD", both in microseconds. */
static uint64_t cpus_of(const char *text)
{
    const char *space = strchr(text, ' ');
    uint64_t quota = os_group_number(text), period = space ? os_group_number(space + 1) : 0;
    if (quota == UINT64_MAX || period == UINT64_MAX || period == 0)
        return UINT64_MAX;
    return quota / period + (quota % period > 0);
}

/* How many CPUs' time a process (0: this one) may use, rounded up; UINT64_MAX: no limit. It is the
 * smallest quota (cpu.max) of its group and of the visible groups above. */
static uint64_t group_cpus(pid_t pid)
{
    return os_group_least("", pid, NULL, "cpu.max", cpus_of);
}

/* How many processes and threads this process's groups may have (the smallest pids.max);
 * UINT64_MAX: no limit. */
static uint64_t group_tasks(void)
{
    return os_group_least("", 0, NULL, "pids.max", os_group_number);
}

/* ---- CPUs and files ---- */

enum { CPUS_MAX = 4096 };

unsigned os_process_cpus(pid_t pid)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    if (!set)
        return 1;
    int count = sched_getaffinity(pid, size, set) == 0 ? CPU_COUNT_S(size, set) : 1;
    CPU_FREE(set);
    unsigned may_run_on = count > 0 ? (unsigned)count : 1;
    uint64_t quota = group_cpus(pid);
    return quota == 0 ? 1 : quota < may_run_on ? (unsigned)quota : may_run_on;
}

/* The result is the lowest free number. */
static int open_null(int number)
{
    return open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int os_process_hold_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open_null(fd) < 0) /* gets `fd`: those below are open */
            return -errno;
    return 0;
}

int os_process_close(int fd)
{
    int rc = 0;
    const int null = fd <= STDERR_FILENO ? open_null(fd) : -1;
    if (null < 0 || dup3(null, fd, 0) < 0) {
        close(fd);
        rc = os_process_hold_standard(); /* one number is free now */
    }
    if (null >= 0)
        close(null);
    return rc;
}

int os_process_keep_children(void)
{
    const struct sigaction by_default = { .sa_handler = SIG_DFL };
    return sigaction(SIGCHLD, &by_default, NULL) < 0 ? -errno : 0;
}

size_t os_process_raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 256;
    rlim_t files = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < OS_PROCESS_FILES_MAX ? limit.rlim_max : OS_PROCESS_FILES_MAX;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        files = limit.rlim_cur;
    return files < OS_PROCESS_FILES_MAX ? (size_t)files : OS_PROCESS_FILES_MAX;
}

void os_process_reserve_files(size_t count)
{
    enum { MOST = 65536 };
    const int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd >= 0) /* on failure the table grows later */
        os_file_close(fcntl(fd, F_DUPFD_CLOEXEC, (int)(count < MOST ? count : MOST) - 1));
    os_file_close(fd);
}

void os_process_lower_priority(void)
{
    enum { LOWEST = 19 };
    (void)setpriority(PRIO_PROCESS, 0, LOWEST); /* of this thread alone; always allowed */
}

void os_process_limit_heaps(unsigned count)
{
#ifdef M_ARENA_MAX
    (void)mallopt(M_ARENA_MAX, (int)count);
#else
    (void)count;
#endif
}

void os_process_return_large_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
    enum { LARGE = 1 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
}

void os_process_trim_heaps(void)
{
#ifdef M_ARENA_MAX
    (void)malloc_trim(0);
#endif
}

/* A limit of 0 bytes concerns files only. With 1 byte no program gets the memory, either. */
int os_process_forbid_core(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -errno;
    limit.rlim_max = limit.rlim_max < 1 ? 0 : 1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_CORE, &limit) < 0 ? -errno : 0;
}

void os_process_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name); /* on failure the old name stays */
}

/* ---- the limit of tasks ---- */

/* The number in a file; UINT64_MAX: no number. */
static uint64_t read_number(const char *path)
{
    char text[32];
    return os_file_read_text(path, text, sizeof(text)) ? os_group_number(text) : UINT64_MAX;
}

uint64_t os_process_tasks(bool limited, char name[OS_PROCESS_LIMIT_MAX])
{
    struct rlimit limit;
    bool known = limited && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    const struct {
        const char *name;
        uint64_t most;
    } limits[] = {
        { "kernel.pid_max", read_number("/proc/sys/kernel/pid_max") },
        { "kernel.threads-max", read_number("/proc/sys/kernel/threads-max") },
        { "pids.max of the control group", group_tasks() },
        { "ulimit -u", known ? limit.rlim_cur : UINT64_MAX },
    };
    unsigned least = 0;
    for (unsigned i = 1; i < sizeof(limits) / sizeof(limits[0]); i++)
        least = limits[i].most < limits[least].most ? i : least;
    snprintf(name, OS_PROCESS_LIMIT_MAX, "%s %llu", limits[least].name,
             (unsigned long long)limits[least].most);
    return limits[least].most;
}

/* ---- the user ---- */

bool os_process_exists(pid_t pid)
{
    return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH);
}

int os_process_end_with_parent(int signal, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, signal) < 0)
        return -errno;
    return getppid() == parent ? 0 : -ESRCH;
}

/* The lookup through the name service may open sockets, and is for users that the file lacks. */
static const struct passwd *find_in_file(const char *name)
{
    FILE *users = fopen("/etc/passwd", "re");
    const struct passwd *entry = users ? fgetpwent(users) : NULL;
    while (entry && strcmp(entry->pw_name, name) != 0)
        entry = fgetpwent(users);
    if (users)
        fclose(users);
    return entry;
}

int os_process_find_user(const char *name, struct os_process_user *ret_user)
{
    enum { NOBODY = 65534 };
    const struct passwd *entry = find_in_file(name);
    if (!entry)
        entry = getpwnam(name);
    if (!entry && strcmp(name, "nobody") != 0)
        return -ENOENT;
    *ret_user = entry ? (struct os_process_user){ entry->pw_uid, entry->pw_gid }
                      : (struct os_process_user){ NOBODY, NOBODY };
    return 0;
}

/* Whether the map of a user namespace (user_namespaces(7)) has the id. Its lines are "FIRST OUTSIDE
 * COUNT". */
static bool has_id(const char *map, unsigned id)
{
    char text[1024], *rest = NULL;
    if (!os_file_read_text(map, text, sizeof(text)))
        return true;
    uint64_t number[3];
    unsigned count = 0;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        if (!num_parse_u64(span_text(word), &number[count]))
            return true;
        count = (count + 1) % 3;
        if (count == 0 && id >= number[0] && id - number[0] < number[2])
            return true;
    }
    return false;
}

bool os_process_can_become(const struct os_process_user *user)
{
    const uint32_t needed = 1U << CAP_SETUID | 1U << CAP_SETGID;
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective & needed) == needed &&
           has_id("/proc/self/uid_map", user->uid) && has_id("/proc/self/gid_map", user->gid);
}

void os_process_user_name(char out[OS_PROCESS_USER_MAX])
{
    const struct passwd *entry = getpwuid(geteuid());
    if (entry)
        snprintf(out, OS_PROCESS_USER_MAX, "%s", entry->pw_name);
    else
        snprintf(out, OS_PROCESS_USER_MAX, "%u", (unsigned)geteuid());
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
