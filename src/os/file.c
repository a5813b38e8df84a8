/* SPDX-License-Identifier: MIT
 *
 * The one place that turns a path into a descriptor, so that "nothing outside
 * the root" has to be right only here. The kernel resolves the whole path in
 * one openat2 call; there is no check beforehand that a rename could outrun.
 *
 * It does not judge what was opened: whoever asked looks at the descriptor.
 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A rename somewhere on the way makes openat2 answer EAGAIN rather than guess. */
enum { OPEN_ATTEMPTS = 16 };

/* Nothing of this blocks: O_NONBLOCK lets a fifo open without a writer. */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define PEEK_FLAGS (O_PATH | O_CLOEXEC)

enum openat2_support { OPENAT2_UNKNOWN, OPENAT2_WORKS, OPENAT2_MISSING };
static _Atomic int openat2_support = OPENAT2_UNKNOWN;
static _Atomic bool walk_forced;

static int open_once(int directory_fd, const char *name, int flags)
{
    int fd;
    do
        fd = openat(directory_fd, name, flags);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static int resolve_once(int root_fd, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (uint64_t)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

/* Old kernels say ENOSYS; sandboxes that do not know the call say EPERM, which
 * a file could say too, so the question is asked once about something harmless. */
static bool openat2_works(void)
{
    int support = atomic_load_explicit(&openat2_support, memory_order_relaxed);
    if (support == OPENAT2_UNKNOWN) {
        int fd = resolve_once(AT_FDCWD, ".", PEEK_FLAGS);
        support = fd == -ENOSYS || fd == -EPERM ? OPENAT2_MISSING : OPENAT2_WORKS;
        os_file_close(fd);
        atomic_store_explicit(&openat2_support, support, memory_order_relaxed);
    }
    return support == OPENAT2_WORKS;
}

static int resolve_beneath(int root_fd, const char *path, int flags)
{
    int fd = -EAGAIN;
    for (int attempt = 0; attempt < OPEN_ATTEMPTS && (fd == -EAGAIN || fd == -EINTR); attempt++)
        fd = resolve_once(root_fd, path, flags);
    return fd;
}

/* Opens one component. A link says -ELOOP whatever is asked for: with O_PATH
 * alone the link itself would be opened, and with O_DIRECTORY it is an ENOTDIR
 * like any file, so those two are told apart by looking. */
static int open_component(int directory_fd, const char *name, int flags)
{
    struct stat status;

    int fd = open_once(directory_fd, name, flags | O_NOFOLLOW);
    if (fd == -ENOTDIR && os_file_stat_at(directory_fd, name, &status) == 0 &&
        S_ISLNK(status.st_mode))
        return -ELOOP;
    if (fd >= 0 && (flags & O_PATH) != 0 && os_file_stat(fd, &status) == 0 &&
        S_ISLNK(status.st_mode)) {
        os_file_close(fd);
        return -ELOOP;
    }
    return fd;
}

/* Copies the component that begins at *path, and moves *path behind it and its
 * slashes. 0 or -errno. */
static int take_component(const char **path, char name[NAME_MAX + 1])
{
    size_t len = strcspn(*path, "/");
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, *path, len);
    name[len] = '\0';
    *path += len;
    *path += strspn(*path, "/");
    return strcmp(name, "..") == 0 ? -EXDEV : 0;
}

/* What openat2 does, from below: every directory on the way is opened in the one
 * before it and no link is followed, so there is no way up or out. Links that
 * stay inside are the price. */
static int walk_beneath(int root_fd, const char *path, int flags)
{
    char name[NAME_MAX + 1];
    int directory_fd = root_fd;
    int fd;

    if (path[0] == '\0')
        return -ENOENT;
    if (path[0] == '/')
        return -EXDEV;
    if (path[strlen(path) - 1] == '/')
        flags |= O_DIRECTORY;
    for (;;) {
        fd = take_component(&path, name);
        if (fd < 0)
            break;
        bool last = *path == '\0';
        fd = open_component(directory_fd, name, last ? flags : PEEK_FLAGS | O_DIRECTORY);
        if (fd < 0 || last)
            break;
        if (directory_fd != root_fd)
            os_file_close(directory_fd);
        directory_fd = fd;
    }
    if (directory_fd != root_fd)
        os_file_close(directory_fd);
    return fd;
}

static int open_beneath(int root_fd, const char *path, int flags)
{
    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    if (!atomic_load_explicit(&walk_forced, memory_order_relaxed) && openat2_works())
        return resolve_beneath(root_fd, path, flags);
    return walk_beneath(root_fd, path, flags);
}

int os_file_open_directory(const char *path)
{
    return open_once(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int os_file_open_beneath(int root_fd, const char *path)
{
    return open_beneath(root_fd, path, READ_FLAGS);
}

int os_file_peek_beneath(int root_fd, const char *path)
{
    return open_beneath(root_fd, path, PEEK_FLAGS);
}

bool os_file_force_walk(bool force)
{
    return atomic_exchange(&walk_forced, force);
}

int os_file_stat(int fd, struct stat *ret_stat)
{
    return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

int os_file_stat_at(int directory_fd, const char *name, struct stat *ret_stat)
{
    return fstatat(directory_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int os_file_read_link(int directory_fd, const char *name, char *out, size_t size)
{
    ssize_t len = readlinkat(directory_fd, name, out, size - 1);
    if (len < 0)
        return -errno;
    out[len] = '\0';
    return 0;
}

int os_file_read_at(int fd, char *bytes, size_t len, uint64_t offset)
{
    while (len > 0) {
        ssize_t count = pread(fd, bytes, len, (off_t)offset);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return -errno;
        if (count == 0)
            return -ENODATA;
        bytes += count;
        len -= (size_t)count;
        offset += (uint64_t)count;
    }
    return 0;
}

void os_file_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}
