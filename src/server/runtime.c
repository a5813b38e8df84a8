/* SPDX-License-Identifier: MIT */
#include "server/runtime.h"

#include "base/num.h"
#include "base/span.h"
#include "os/socket.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every user can make files here. */
#define PUBLIC_FOLDER "/tmp/"

static int print_path(char out[SERVER_RUNTIME_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int print_path(char out[SERVER_RUNTIME_MAX], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(out, SERVER_RUNTIME_MAX, format, arguments);
    va_end(arguments);
    return len > 0 && len < SERVER_RUNTIME_MAX ? 0 : -ENAMETOOLONG;
}

int server_runtime_folder(char out[SERVER_RUNTIME_MAX])
{
    const char *runtime = getenv("RUNTIME_DIRECTORY");
    if (runtime && runtime[0] == '/')
        return print_path(out, "%.*s", (int)strcspn(runtime, ":"), runtime);
    if (geteuid() == 0)
        return print_path(out, "/run/weir");
    const char *user = getenv("XDG_RUNTIME_DIR");
    if (user && user[0] == '/' && access(user, W_OK | X_OK) == 0)
        return print_path(out, "%s/weir", user);
    return print_path(out, PUBLIC_FOLDER "weir-%u", (unsigned)geteuid());
}

int server_runtime_check(const char *folder)
{
    struct stat info;
    bool is_public = strncmp(folder, PUBLIC_FOLDER, sizeof(PUBLIC_FOLDER) - 1) == 0;
    if ((is_public ? lstat(folder, &info) : stat(folder, &info)) < 0)
        return -errno;
    if (!S_ISDIR(info.st_mode))
        return S_ISLNK(info.st_mode) ? -EPERM : -ENOTDIR;
    /* The folder of a service belongs to the service's user; root may use it too. */
    bool ours = info.st_uid == geteuid() || geteuid() == 0;
    return ours && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 ? 0 : -EPERM;
}

int server_runtime_make(const char *folder)
{
    if (mkdir(folder, S_IRWXU) < 0 && errno != EEXIST)
        return -errno;
    return server_runtime_check(folder);
}

int server_runtime_socket(const char *folder, pid_t pid, char out[SERVER_RUNTIME_MAX])
{
    return print_path(out, "%s/%d.sock", folder, (int)pid);
}

/* The process id in the name of a socket, or 0. */
static pid_t pid_of(const char *name)
{
    struct span text = span_text(name);
    uint64_t pid;
    if (!span_ends(text, SPAN(".sock")) || !num_parse_u64(span_first(text, text.len - 5), &pid) ||
        pid == 0 || pid > INT_MAX)
        return 0;
    return (pid_t)pid;
}

/* Whether a process listens on the socket. A stale file is removed. */
static bool is_served(const char *path)
{
    int fd = os_socket_connect(path);
    if (fd >= 0)
        close(fd);
    if (fd == -ECONNREFUSED)
        (void)os_socket_unlink(path, NULL); /* an error means that it is gone already */
    return fd >= 0 || fd == -EAGAIN;
}

int server_runtime_list(const char *folder, pid_t *ret_pids, int most)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return -errno;
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(directory))) {
        char path[SERVER_RUNTIME_MAX];
        pid_t pid = pid_of(entry->d_name);
        if (pid == 0 || server_runtime_socket(folder, pid, path) < 0 || !is_served(path))
            continue;
        if (count < most)
            ret_pids[count] = pid;
        count++;
    }
    closedir(directory);
    return count;
}
