/* SPDX-License-Identifier: MIT
 *
 * Only this file turns a path into a descriptor, so "nothing outside the root" has to be right only
 * here. The kernel resolves the whole path in one openat2 call. There is no check before it, which
 * a rename could outrun.
 *
 * The type of the opened file is not checked here: the caller uses fstat.
 */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

/* openat2 returns EAGAIN when a rename happens on the path. */
enum { OPEN_ATTEMPTS = 16 };

/* With O_NONBLOCK a fifo opens without a writer, so no open blocks. */
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

#define RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)

static int resolve_once(int root_fd, const char *path, int flags, uint64_t resolve)
{
    const struct open_how how = { .flags = (uint64_t)flags, .resolve = resolve };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : (int)fd;
}

/* An old kernel returns ENOSYS. A sandbox that does not know the call returns EPERM, which a file
 * could return too. The test is therefore made once, with ".". */
static bool openat2_works(void)
{
    int support = atomic_load_explicit(&openat2_support, memory_order_relaxed);
    if (support == OPENAT2_UNKNOWN) {
        int fd = resolve_once(AT_FDCWD, ".", PEEK_FLAGS, RESOLVE);
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
        fd = resolve_once(root_fd, path, flags, RESOLVE);
    return fd;
}

/* Opens one component. A link gives -ELOOP with all flags. O_PATH alone would open the link itself,
 * and O_DIRECTORY gives ENOTDIR as for a file; in both cases fstat finds the link. */
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

/* Copies the first component of *path, and moves *path past it and its slashes. 0 or -errno. */
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

/* Does the work of openat2 step by step: each directory is opened in the one before it, and no link
 * is followed, so no path leads out. Its cost: links that stay inside do not work either. */
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

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* EAGAIN: not in memory, or a rename on the path. EXDEV: a mount on the path, or a way out. */
static int open_cached(int root_fd, const char *path, int flags)
{
    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    if (atomic_load_explicit(&walk_forced, memory_order_relaxed) || !openat2_works())
        return walk_beneath(root_fd, path, flags);
    const int fd = resolve_once(root_fd, path, flags, RESOLVE | RESOLVE_CACHED | RESOLVE_NO_XDEV);
    if (fd == -EINVAL) /* an old kernel, or a name that this filesystem cannot have */
        return resolve_beneath(root_fd, path, flags);
    return fd == -EAGAIN || fd == -EXDEV || fd == -EINTR ? -EINPROGRESS : fd;
}

int os_file_open_directory(const char *path)
{
    return open_once(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool os_file_can_enter(int directory_fd, bool lists)
{
    return faccessat(directory_fd, ".", lists ? X_OK | R_OK : X_OK, AT_EACCESS) == 0;
}

int os_file_open_beneath(int root_fd, const char *path)
{
    return open_beneath(root_fd, path, READ_FLAGS);
}

int os_file_peek_beneath(int root_fd, const char *path)
{
    return open_beneath(root_fd, path, PEEK_FLAGS);
}

int os_file_open_cached(int root_fd, const char *path)
{
    return open_cached(root_fd, path, READ_FLAGS);
}

int os_file_peek_cached(int root_fd, const char *path)
{
    return open_cached(root_fd, path, PEEK_FLAGS);
}

enum os_file_medium os_file_medium(int fd)
{
    struct statfs status;
    if (fstatfs(fd, &status) < 0)
        return OS_FILE_LOCAL;
    switch ((uint32_t)status.f_type) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
        return OS_FILE_MEMORY;
    case FUSE_SUPER_MAGIC:
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case AFS_FS_MAGIC:
    case CODA_SUPER_MAGIC:
    case OCFS2_SUPER_MAGIC:
    case V9FS_MAGIC:
    case AUTOFS_SUPER_MAGIC:
        return OS_FILE_REMOTE;
    default:
        return OS_FILE_LOCAL;
    }
}

bool os_file_force_walk(bool force)
{
    return atomic_exchange(&walk_forced, force);
}

int os_file_stat(int fd, struct stat *ret_stat)
{
    return fstat(fd, ret_stat) < 0 ? -errno : 0;
}

static struct timespec time_of(struct statx_timestamp time)
{
    return (struct timespec){ .tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec };
}

/* statx, because newfstatat of an empty name ignores AT_STATX_DONT_SYNC in Linux 6.18. */
int os_file_stat_cached(int fd, struct stat *ret_stat)
{
    struct statx found;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found) < 0)
        return -errno;
    *ret_stat = (struct stat){ .st_dev = makedev(found.stx_dev_major, found.stx_dev_minor),
                               .st_ino = found.stx_ino,
                               .st_mode = found.stx_mode,
                               .st_nlink = found.stx_nlink,
                               .st_uid = found.stx_uid,
                               .st_gid = found.stx_gid,
                               .st_size = (off_t)found.stx_size,
                               .st_mtim = time_of(found.stx_mtime),
                               .st_ctim = time_of(found.stx_ctime) };
    return 0;
}

int os_file_stat_at(int directory_fd, const char *name, struct stat *ret_stat)
{
    return fstatat(directory_fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int os_file_probe(int directory_fd, const char *path)
{
    struct stat status;
    return fstatat(directory_fd, path, &status, 0) < 0 ? -errno : 0;
}

int os_file_stat_path(int directory_fd, const char *path, struct stat *ret_stat)
{
    return fstatat(directory_fd, path, ret_stat, 0) < 0 ? -errno : 0;
}

int os_file_stat_remembered(const char *path, struct stat *ret_stat)
{
    const int fd = openat2_works() ? resolve_once(AT_FDCWD, path, PEEK_FLAGS, RESOLVE_CACHED)
                                   : -EINVAL;
    if (fd == -EINVAL) /* an old kernel */
        return os_file_stat_path(AT_FDCWD, path, ret_stat);
    if (fd < 0)
        return fd == -EAGAIN || fd == -EINTR ? -EINPROGRESS : fd;
    const int rc = os_file_stat_cached(fd, ret_stat);
    os_file_close(fd);
    return rc;
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

bool os_file_read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

bool os_file_dates_folders(int fd)
{
    struct statfs status;

    if (fstatfs(fd, &status) < 0)
        return false;
    switch ((uint32_t)status.f_type) {
    case BTRFS_SUPER_MAGIC:
    case EROFS_SUPER_MAGIC_V1:
    case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case SQUASHFS_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

int os_file_read_cached(int fd, char *bytes, size_t len, uint64_t offset)
{
    const struct iovec to = { bytes, len };
    if (len == 0)
        return 0;
    const ssize_t count = preadv2(fd, &to, 1, (off_t)offset, RWF_NOWAIT);
    if (count == 0)
        return -ENODATA;
    if (count > 0)
        return (size_t)count == len ? 0 : -EINPROGRESS;
    const bool unknown = errno == EAGAIN || errno == EOPNOTSUPP || errno == ENOSYS ||
                         errno == EINVAL || errno == EINTR;
    return unknown ? -EINPROGRESS : -errno;
}

int os_file_may_write(const char *path)
{
    char folder[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    if (slash)
        (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash + 1 - path), path);
    return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 ? 0 : -errno;
}

ssize_t os_file_try_write(int fd, const char *bytes, size_t len)
{
    const struct iovec piece = { (void *)(uintptr_t)bytes, len };
    const ssize_t written = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    return written < 0 && (errno == EOPNOTSUPP || errno == ENOSYS) ? write(fd, bytes, len)
                                                                   : written;
}

bool os_file_is_absent(const char *path)
{
    struct stat file;
    return lstat(path, &file) < 0 && errno == ENOENT;
}

void os_file_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}
