/* SPDX-License-Identifier: MIT
 *
 * The lock belongs to a process (F_SETLK): workers do not inherit it, and the kernel reports its
 * owner. The owner loses it when it closes any descriptor of the file. A file that this process
 * holds is therefore never opened again: is_at finds out.
 */
#include "server/pidfile.h"

#include "base/duration.h"
#include "config/read.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 8 };      /* to open a file that another process removes at the same time */
enum { NUMBER_BYTES = 16 }; /* more than the longest process id and its newline */

/* Locks the file. -EEXIST: another process has the lock; `lock` has its id. -EBUSY: a process has a
 * lock for reading, which any user can have who can read the file. No server has one. */
static int lock_file(int fd, struct flock *lock)
{
    *lock = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_SETLK, lock) == 0)
        return 0;
    if (errno != EAGAIN && errno != EACCES)
        return -errno;
    if (fcntl(fd, F_GETLK, lock) < 0)
        return -errno;
    return lock->l_type == F_UNLCK ? -EAGAIN : lock->l_type == F_RDLCK ? -EBUSY : -EEXIST;
}

static bool is_at(const struct server_pidfile *file, const char *path)
{
    struct stat named, held;
    return file->path && stat(path, &named) == 0 && fstat(file->fd, &held) == 0 &&
           named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

/* A file with another name may be another user's choice: a link to a file that this user can
 * write. */
static int judge_kind(const struct stat *file)
{
    return S_ISLNK(file->st_mode)    ? -ELOOP
           : !S_ISREG(file->st_mode) ? -EINVAL
           : file->st_nlink > 1      ? -EMLINK
                                     : 0;
}

/* Whether the file has anything but a process id: it is no pid file, and a start would lose that.
 * A crash of the machine may leave NUL bytes. */
static bool has_other_contents(int fd)
{
    char text[2 * NUMBER_BYTES];
    const ssize_t len = pread(fd, text, sizeof(text), 0);
    bool other = len == (ssize_t)sizeof(text);
    for (ssize_t i = 0; i < len && !other; i++)
        other = strchr("0123456789 \t\r\n", text[i]) == NULL;
    return other;
}

static int check_pidfile(int fd)
{
    struct stat info;
    const int rc = fstat(fd, &info) < 0 ? -errno : judge_kind(&info);
    return rc == 0 && has_other_contents(fd) ? -ENOTEMPTY : rc;
}

/* NULL: the error is none of check_pidfile's own. */
static const char *refusal_of(int error)
{
    switch (error) {
    case -ELOOP:
        return "it is a link; name the file itself";
    case -EINVAL:
        return "it is no regular file; choose another file";
    case -EMLINK:
        return "it has a second name (a hard link), so another user may have planted it; remove it";
    case -ENOTEMPTY:
        return "it has other contents than a process id; choose another file, or remove it";
    default:
        return NULL;
    }
}

const char *server_pidfile_refusal(const char *path)
{
    struct stat info;
    int rc = lstat(path, &info) == 0 ? judge_kind(&info) : 0;
    const int fd = rc == 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    rc = fd >= 0 ? check_pidfile(fd) : rc;
    os_file_close(fd);
    return refusal_of(rc);
}

/* A descriptor of the file, locked by this process or by the predecessor; -EAGAIN if the file was
 * replaced meanwhile, or -errno. */
static int try_pidfile(const char *path, pid_t predecessor, struct flock *lock)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return -errno;
    int rc = check_pidfile(fd);
    if (rc == 0)
        rc = lock_file(fd, lock);
    if (rc == -EEXIST && lock->l_pid == predecessor)
        rc = 0;
    struct server_pidfile mine = { .path = (char[]){ "" }, .fd = fd };
    if (rc == 0 && !is_at(&mine, path))
        rc = -EAGAIN; /* its owner removed it before the lock was taken */
    if (rc == -EBUSY && is_at(&mine, path) && unlink(path) == 0)
        rc = -EAGAIN; /* the reader keeps its lock, of a file without a name */
    if (rc < 0)
        os_file_close(fd);
    return rc < 0 ? rc : fd;
}

static int open_pidfile(struct server_pidfile *file, const struct config_store *store,
                        pid_t predecessor, char *why, size_t size)
{
    const char *path = config_read_result(store)->pid_file;
    char label[CONFIG_ORIGIN_MAX];
    struct flock lock = { 0 };
    int fd = -EAGAIN;
    for (int i = 0; i < ATTEMPTS && fd == -EAGAIN; i++)
        fd = try_pidfile(path, predecessor, &lock);
    config_read_label(store, SETTING_pid_file, 0, label);
    if (fd == -EEXIST)
        snprintf(why, size,
                 "%sthe pid file %s belongs to process %d, which is running: stop that process, or "
                 "choose another file with --pid-file",
                 label, path, (int)lock.l_pid);
    else if (refusal_of(fd) != NULL)
        snprintf(why, size, "%scannot use the pid file %s: %s", label, path, refusal_of(fd));
    else if (fd < 0)
        snprintf(why, size,
                 "%scannot open the pid file %s: %s; give this user the right to write there, or "
                 "choose another file with --pid-file",
                 label, path, strerror(-fd));
    if (fd < 0)
        return fd;
    char *copy = strdup(path);
    if (!copy) {
        snprintf(why, size, "not enough memory for the pid file");
        os_file_close(fd);
        return -ENOMEM;
    }
    bool unlocked = predecessor > 0 && lock.l_pid == predecessor;
    *file = (struct server_pidfile){ .path = copy, .fd = fd, .unlocked = unlocked };
    return 0;
}

/* Prints this process's id, and newlines up to the end of the text. Returns the length with the
 * first newline. */
static int print_number(char text[NUMBER_BYTES])
{
    memset(text, '\n', NUMBER_BYTES);
    const int digits = snprintf(text, NUMBER_BYTES, "%d", (int)getpid());
    text[digits] = '\n';
    return digits + 1;
}

/* Writes this process's id into the file. The same write covers the longer id of an earlier server
 * with newlines. So a reader never sees digits of both. */
static int write_number(const struct server_pidfile *file)
{
    char text[NUMBER_BYTES];
    if (!file->path)
        return 0;
    const int len = print_number(text);
    if (pwrite(file->fd, text, sizeof(text), 0) != sizeof(text) || ftruncate(file->fd, len) < 0)
        return errno ? -errno : -EIO;
    return 0;
}

/* Whether the file in use has this process's id, and not the one of a successor. */
static bool names_this_process(const struct server_pidfile *file)
{
    char text[NUMBER_BYTES], own[NUMBER_BYTES];
    const int len = print_number(own);
    return file->path && pread(file->fd, text, sizeof(text), 0) >= len &&
           memcmp(text, own, (size_t)len) == 0;
}

static void lock_late(struct server_pidfile *file)
{
    struct flock lock;
    if (file->path && file->unlocked)
        file->unlocked = lock_file(file->fd, &lock) < 0;
}

static void close_pidfile(struct server_pidfile *file)
{
    if (!file->path)
        return;
    os_file_close(file->fd);
    free(file->path);
    *file = (struct server_pidfile){ 0 };
}

static void remove_file(struct server_pidfile *file)
{
    lock_late(file);
    if (file->path && !file->unlocked && is_at(file, file->path))
        (void)unlink(file->path); /* the lock is held: no other server uses the file */
    close_pidfile(file);
}

enum { LOCK_AGAIN_MS = 50 }; /* between tries to lock a file that the predecessor holds */

/* ---- one, and the next ---- */

int server_pidfile_prepare(struct server_pidfiles *files, const struct config_store *store,
                           pid_t predecessor, char *why, size_t size)
{
    const char *path = config_read_result(store)->pid_file;
    if (!path || is_at(&files->now, path))
        return 0;
    return open_pidfile(&files->next, store, predecessor, why, size);
}

static void write_or_report(const struct server_pidfile *file, const char *path)
{
    const int rc = write_number(file);
    if (rc < 0)
        log_error_twice(
            "cannot write the pid file %s: %s; the server serves, and programs that read "
            "this file do not find it until the next reload",
            path, strerror(-rc));
}

void server_pidfile_commit(struct server_pidfiles *files, const char *path)
{
    if (!path || !is_at(&files->now, path)) {
        remove_file(&files->now);
        files->now = files->next;
        files->next = (struct server_pidfile){ 0 };
    }
    write_or_report(&files->now, path);
}

void server_pidfile_cancel(struct server_pidfiles *files)
{
    remove_file(&files->next);
}

void server_pidfile_take_back(struct server_pidfiles *files)
{
    if (!names_this_process(&files->now))
        write_or_report(&files->now, files->now.path);
}

uint64_t server_pidfile_tick(struct server_pidfiles *files, uint64_t due_ns)
{
    lock_late(&files->now);
    uint64_t again_ns = os_clock_now_ns() + LOCK_AGAIN_MS * (DURATION_SECOND / 1000);
    return files->now.unlocked && again_ns < due_ns ? again_ns : due_ns;
}

void server_pidfile_remove(struct server_pidfiles *files)
{
    remove_file(&files->next);
    remove_file(&files->now);
}

void server_pidfile_yield(struct server_pidfiles *files)
{
    if (names_this_process(&files->now))
        remove_file(&files->now);
    server_pidfile_leave(files);
}

void server_pidfile_leave(struct server_pidfiles *files)
{
    close_pidfile(&files->next);
    close_pidfile(&files->now);
}
