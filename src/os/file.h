/* SPDX-License-Identifier: MIT
 *
 * Files below a root folder; no path leads out of it. Every function returns 0 or a
 * descriptor on success and -errno on failure; every descriptor is CLOEXEC.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/* Opens a directory to resolve paths against (O_PATH). */
MUST_USE int os_file_open_directory(const char *path);

/* Whether the effective user may open paths below the directory and, if it `lists`, read the names
 * in it. */
bool os_file_can_enter(int directory_fd, bool lists);

/* Opens `path` below `root_fd` for reading. The path is relative, without a leading slash; "." is
 * the root. The call does not block on a fifo or a device, and never opens a file outside the root:
 * it uses openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS. A kernel without openat2 gets a
 * walk, component by component, that follows no link. -EXDEV or -ELOOP: the path would leave the
 * root. EAGAIN is retried a few times. */
MUST_USE int os_file_open_beneath(int root_fd, const char *path);

/* The same, but for fstat only (O_PATH): it needs no permission to read, and does not open a device
 * or a fifo. */
MUST_USE int os_file_peek_beneath(int root_fd, const char *path);

/* The same two calls, without waiting for a disk. -EINPROGRESS: the kernel does not have all of the
 * path in memory, or the path crosses a mount. The descriptor is of a filesystem that is not
 * OS_FILE_REMOTE, where opening itself may wait. A kernel before 5.12 waits. */
MUST_USE int os_file_open_cached(int root_fd, const char *path);
MUST_USE int os_file_peek_cached(int root_fd, const char *path);

/* Where the files of a filesystem are, by how long they may take. */
enum os_file_medium {
    OS_FILE_MEMORY, /* tmpfs, ramfs */
    OS_FILE_LOCAL,  /* on a disk of this machine, or what is not known */
    OS_FILE_REMOTE  /* another machine or another process has them (NFS, FUSE and the like) */
};
enum os_file_medium os_file_medium(int fd);

/* Forces the walk in place of openat2, so that tests reach it; returns the old setting. */
bool os_file_force_walk(bool force);

/* fstat; 0 or -errno. */
MUST_USE int os_file_stat(int fd, struct stat *ret_stat);

/* The same from what the kernel knows, without a question to another machine or process. Type,
 * owner, links, size, and the times of changes are set. */
MUST_USE int os_file_stat_cached(int fd, struct stat *ret_stat);

/* fstatat for one name in an open directory; a link is not followed. 0 or -errno. */
MUST_USE int os_file_stat_at(int directory_fd, const char *name, struct stat *ret_stat);

/* fstatat for a path below a directory. Links are followed, also to places outside of it. So a
 * failure proves that nothing can be opened, and a success proves nothing. 0 or -errno. */
MUST_USE int os_file_probe(int directory_fd, const char *path);

/* The same with the result. Another folder or a link outside of the directory may be measured. */
MUST_USE int os_file_stat_path(int directory_fd, const char *path, struct stat *ret_stat);

/* stat of an absolute path from what the kernel has in memory. A file of another machine or process
 * may have changed there meanwhile. -EINPROGRESS: the kernel would have to ask for a name on the
 * path. A kernel before 5.12 asks, and waits. 0 or -errno. */
MUST_USE int os_file_stat_remembered(const char *path, struct stat *ret_stat);

/* Whether each new, removed or renamed name changes the ctime of its folder, by the clock of this
 * machine: on the filesystems of which that is known. False for network filesystems and FUSE. */
bool os_file_dates_folders(int fd);

/* readlinkat for one name in an open directory, with a NUL; a longer target is cut.
 * 0 or -errno. */
MUST_USE int os_file_read_link(int directory_fd, const char *name, char *out, size_t size);

/* Whether this user may write the file, or make it where there is none. Nothing is opened. 0 or
 * -errno; -ENOENT: its folder is missing. */
MUST_USE int os_file_may_write(const char *path);

/* Reads a small file of text, at most `size` - 1 bytes, and adds a NUL. False, with an empty text:
 * it is empty or cannot be read. */
bool os_file_read_text(const char *path, char *text, size_t size);

/* Reads exactly `len` bytes at `offset`; -ENODATA when the file ends before.
 * Retries EINTR. On failure `bytes` may hold a part. */
MUST_USE int os_file_read_at(int fd, char *bytes, size_t len, uint64_t offset);

/* The same from memory. -EINPROGRESS: not all of the bytes are in memory, or the filesystem cannot
 * say. */
MUST_USE int os_file_read_cached(int fd, char *bytes, size_t len, uint64_t offset);

/* write(2) to a pipe or a socket, also one that other processes share. Where the kernel can, it
 * does not wait for space: -1 with EAGAIN. It cannot in old kernels, and for FIFOs and terminals.
 * There the call may wait, so poll(2) comes first. */
ssize_t os_file_try_write(int fd, const char *bytes, size_t len);

/* Whether nothing has this path, not even a link that leads nowhere. */
bool os_file_is_absent(const char *path);

/* Closes, ignoring EINTR (the descriptor is gone either way). -1 is allowed. */
void os_file_close(int fd);
