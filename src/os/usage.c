/* SPDX-License-Identifier: MIT */
#include "os/usage.h"

#include "base/duration.h"
#include "base/num.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, PATH_SIZE = 64 };

/* Reads the first bytes of /proc/PID/NAME, and adds a NUL. */
static int read_proc_file(pid_t pid, const char *name, char text[TEXT_MAX])
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t len = read(fd, text, TEXT_MAX - 1);
    int rc = len < 0 ? -errno : 0;
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    return rc;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
    return ticks * (DURATION_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Fields of /proc/PID/stat by their numbers in proc(5). */
enum {
    STATE = 3,
    USER = 14,
    SYSTEM,
    CHILDREN_USER,
    CHILDREN_SYSTEM,
    STARTED = 22,
    PAGES = 24,
    FIELDS
};

/* Reads the numbers; a field that is no number, or is negative, stays 0. */
static void split_stat(const char *text, uint64_t fields[FIELDS])
{
    struct span rest = span_trim(span_text(text));
    for (unsigned i = STATE; i < FIELDS && rest.len > 0; i++) {
        struct span field = span_first(rest, strcspn(rest.at, " "));
        (void)num_parse_u64(field, &fields[i]);
        rest = span_trim(span_skip(rest, field.len));
    }
}

static int read_stat(pid_t pid, struct os_usage *usage)
{
    char text[TEXT_MAX];
    uint64_t fields[FIELDS] = { 0 };
    int rc = read_proc_file(pid, "stat", text);
    if (rc < 0)
        return rc;
    const char *after_name = strrchr(text, ')'); /* the name of the process may contain any byte */
    if (!after_name || strncmp(after_name, ") Z", 3) == 0 || strncmp(after_name, ") X", 3) == 0)
        return -ESRCH;
    split_stat(after_name + 1, fields);
    usage->started = fields[STARTED];
    usage->user_ns = ticks_to_ns(fields[USER]);
    usage->system_ns = ticks_to_ns(fields[SYSTEM]);
    usage->children_user_ns = ticks_to_ns(fields[CHILDREN_USER]);
    usage->children_system_ns = ticks_to_ns(fields[CHILDREN_SYSTEM]);
    usage->resident_bytes = fields[PAGES] * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static uint64_t count_files(pid_t pid)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    uint64_t count = 0;
    const struct dirent *each;
    while ((each = readdir(folder)))
        count += each->d_name[0] != '.';
    closedir(folder);
    return count;
}

static uint64_t read_files_limit(pid_t pid)
{
    char text[TEXT_MAX];
    uint64_t limit = 0;
    if (read_proc_file(pid, "limits", text) < 0)
        return 0;
    static const char label[] = "Max open files";
    const char *line = strstr(text, label);
    struct span rest = span_trim(span_text(line ? line + strlen(label) : ""));
    (void)num_parse_u64(span_first(rest, strcspn(rest.at, " ")), &limit);
    return limit;
}

int os_usage_of(pid_t pid, struct os_usage *ret_usage)
{
    *ret_usage = (struct os_usage){ 0 };
    int rc = read_stat(pid, ret_usage);
    if (rc < 0)
        return rc;
    ret_usage->files = count_files(pid);
    ret_usage->files_limit = read_files_limit(pid);
    return 0;
}

/* schedstat is finer than ticks: its first number is nanoseconds on a CPU. */
static uint64_t thread_cpu_ns(pid_t pid, uint64_t thread)
{
    char name[PATH_SIZE / 2], text[TEXT_MAX];
    uint64_t ns = 0;
    snprintf(name, sizeof(name), "task/%u/schedstat", (unsigned)thread);
    if (read_proc_file(pid, name, text) == 0)
        (void)num_parse_u64(span_first(span_text(text), strcspn(text, " ")), &ns);
    return ns;
}

size_t os_usage_threads(pid_t pid, struct os_usage_thread *threads, size_t most)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    size_t count = 0;
    const struct dirent *each;
    while (folder && count < most && (each = readdir(folder))) {
        uint64_t id;
        if (num_parse_u64(span_text(each->d_name), &id))
            threads[count++] = (struct os_usage_thread){ (pid_t)id, thread_cpu_ns(pid, id) };
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Whether the state in a `stat` file is this letter. */
static bool has_state(pid_t pid, const char *name, char letter)
{
    char text[TEXT_MAX];
    const char *state = read_proc_file(pid, name, text) == 0 ? strrchr(text, ')') : NULL;
    return state && state[1] == ' ' && state[2] == letter;
}

bool os_usage_has_ended(pid_t pid)
{
    return has_state(pid, "stat", 'Z');
}

static bool is_stuck(pid_t pid, pid_t thread, struct os_usage_stuck *ret_stuck)
{
    char name[PATH_SIZE / 2], text[TEXT_MAX];
    snprintf(name, sizeof(name), "task/%d/stat", (int)thread);
    if (!has_state(pid, name, 'D'))
        return false;
    *ret_stuck = (struct os_usage_stuck){ .thread = thread };
    snprintf(name, sizeof(name), "task/%d/wchan", (int)thread);
    if (read_proc_file(pid, name, text) == 0 && strcmp(text, "0") != 0)
        snprintf(ret_stuck->where, sizeof(ret_stuck->where), "%.40s", text);
    return true;
}

bool os_usage_find_stuck(pid_t pid, struct os_usage_stuck *ret_stuck)
{
    enum { THREADS_MAX = 1024 };
    struct os_usage_thread *threads = calloc(THREADS_MAX, sizeof(*threads));
    const size_t count = threads ? os_usage_threads(pid, threads, THREADS_MAX) : 0;
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        found = is_stuck(pid, threads[i].id, ret_stuck);
    free(threads);
    return found;
}

bool os_usage_is_of_user(pid_t pid, uid_t user)
{
    char text[TEXT_MAX];
    uint64_t effective; /* the second number of the line */
    const char *line = read_proc_file(pid, "status", text) == 0 ? strstr(text, "\nUid:") : NULL;
    if (!line)
        return false;
    struct span rest = span_text(line + sizeof("\nUid:") - 1);
    (void)span_take_word(&rest);
    return num_parse_u64(span_take_word(&rest), &effective) && effective == user;
}

uint64_t os_usage_started(pid_t pid)
{
    struct os_usage usage;
    return read_stat(pid, &usage) == 0 ? usage.started : 0;
}

/* ---- families ---- */

enum { FAMILY_MAX = 4096 };

struct family {
    pid_t pid[FAMILY_MAX];
    size_t count;
};

/* Adds the children that one thread has. */
static void add_children(pid_t pid, const char *thread, struct family *family)
{
    char name[PATH_SIZE], text[TEXT_MAX];
    snprintf(name, sizeof(name), "task/%.20s/children", thread);
    if (read_proc_file(pid, name, text) < 0)
        return;
    struct span rest = span_trim(span_text(text));
    while (rest.len > 0 && family->count < FAMILY_MAX) {
        struct span word = span_first(rest, strcspn(rest.at, " \n"));
        uint64_t child;
        if (!num_parse_u64(word, &child))
            return;
        family->pid[family->count++] = (pid_t)child;
        rest = span_trim(span_skip(rest, word.len));
    }
}

static void find_children(pid_t pid, struct family *family)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    const struct dirent *each;
    while (folder && (each = readdir(folder)))
        if (each->d_name[0] != '.')
            add_children(pid, each->d_name, family);
    if (folder)
        closedir(folder);
}

int os_usage_of_family(pid_t pid, uint64_t *ret_user_ns, uint64_t *ret_system_ns)
{
    struct family *family = malloc(sizeof(*family));
    if (!family)
        return -ENOMEM;
    *family = (struct family){ .pid = { pid }, .count = 1 };
    *ret_user_ns = *ret_system_ns = 0;
    int rc = 0;
    for (size_t i = 0; i < family->count; i++) {
        struct os_usage usage = { 0 };
        find_children(family->pid[i], family);
        int found = read_stat(family->pid[i], &usage);
        rc = i == 0 ? found : rc; /* a child may have ended */
        *ret_user_ns += usage.user_ns + usage.children_user_ns;
        *ret_system_ns += usage.system_ns + usage.children_system_ns;
    }
    free(family);
    return rc;
}
