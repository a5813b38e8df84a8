/* SPDX-License-Identifier: MIT
 *
 * The path is opened component by component (O_PATH), and each step decides by what it has opened.
 * So it does not matter what another user renames meanwhile. The checks come after the open. An
 * open for appending has no effect on a file, and O_NONBLOCK keeps a FIFO from blocking.
 */
#include "log/file.h"

#include "base/num.h"
#include "log/message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    APPEND_FLAGS = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
    FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_CLOEXEC,
    FILE_MODE = 0640, /* the log holds personal data, so other users cannot read it */
    LINKS_MAX = 40    /* as many as the kernel follows */
};

/* How far the walk along a path has come. */
struct log_walk {
    int fd;              /* the folder reached */
    struct stat folder;  /* its status */
    char rest[PATH_MAX]; /* the components after it */
    unsigned links;      /* followed */
    uid_t user;          /* of the workers */
    char *why;
    size_t why_size;
};

bool log_file_is_named(const char *setting)
{
    return strcmp(setting, "-") != 0 && strcmp(setting, "off") != 0;
}

static int refuse_entry(const struct log_walk *w, int error, const char *text)
{
    (void)snprintf(w->why, w->why_size, "%s", text);
    return error;
}

/* ---- who may have made an entry ---- */

static bool is_ours(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

/* A sticky bit does not matter here: it prevents removal, not creation. */
static bool is_shared(const struct stat *folder)
{
    return !is_ours(folder->st_uid) || (folder->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static bool is_planted(const struct log_walk *w, const struct stat *entry)
{
    return is_shared(&w->folder) && !(is_ours(entry->st_uid) && entry->st_nlink <= 1);
}

/* ---- folders ---- */

/* Takes `fd`, or the -1 of a failed call. */
static int enter_folder(struct log_walk *w, int fd)
{
    const int error = errno;
    if (fd < 0)
        return -error;
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = fd;
    return fstat(fd, &w->folder) < 0 ? -errno : 0;
}

/* Puts the target of the link `fd` before the rest of the path, which begins at `after`. */
static int follow_link(struct log_walk *w, int fd, const struct stat *link, const char *after)
{
    char target[PATH_MAX], joined[2 * PATH_MAX];
    if (is_planted(w, link))
        return refuse_entry(w, -EPERM,
                            "a folder of its path is a link that another user may have planted; "
                            "name the folder itself");
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    const ssize_t len = readlinkat(fd, "", target, sizeof(target) - 1);
    if (len < 0)
        return -errno;
    target[len] = '\0';
    if (snprintf(joined, sizeof(joined), "%s/%s", target, after) >= (int)sizeof(w->rest))
        return -ENAMETOOLONG;
    memcpy(w->rest, joined, strlen(joined) + 1);
    return target[0] == '/' ? enter_folder(w, open("/", FOLDER_FLAGS)) : 0;
}

/* Byte by byte, because the C library's memmove has the name of its memcpy too, which tools that
 * look for overlaps refuse. */
static void keep_rest(struct log_walk *w, const char *after)
{
    char *to = w->rest;
    while ((*to++ = *after++) != '\0')
        continue;
}

/* Goes through `fd`, the entry before `after`: a folder or a link. Takes `fd`. */
static int step_through(struct log_walk *w, int fd, const char *after)
{
    struct stat entry;
    int rc = fstat(fd, &entry) < 0 ? -errno : 0;
    if (rc == 0 && S_ISLNK(entry.st_mode)) {
        rc = follow_link(w, fd, &entry, after);
        (void)close(fd);
        return rc;
    }
    if (rc < 0 || !S_ISDIR(entry.st_mode)) {
        (void)close(fd);
        return rc < 0 ? rc : -ENOTDIR;
    }
    keep_rest(w, after);
    return enter_folder(w, fd);
}

/* Passes the first component of the rest, which ends at `slash`. */
static int walk_once(struct log_walk *w, char *slash)
{
    char *after = slash + strspn(slash, "/");
    if (slash == w->rest) {
        keep_rest(w, after);
        return 0;
    }
    *slash = '\0';
    const int fd = openat(w->fd, w->rest, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : step_through(w, fd, after);
}

/* Reaches the folder of the file. The file's name is left in `rest`. */
static int walk_to_folder(struct log_walk *w, const char *path)
{
    const size_t len = strnlen(path, sizeof(w->rest));
    if (len == sizeof(w->rest))
        return -ENAMETOOLONG;
    memcpy(w->rest, path, len + 1);
    int rc = enter_folder(w, open(path[0] == '/' ? "/" : ".", FOLDER_FLAGS));
    char *slash;
    while (rc == 0 && (slash = strchr(w->rest, '/')) != NULL)
        rc = walk_once(w, slash);
    return rc;
}

/* ---- the file ---- */

static int check_file(const struct log_walk *w, const struct stat *file)
{
    if (S_ISLNK(file->st_mode))
        return refuse_entry(w, -ELOOP, "it is a link; name the file itself");
    if (S_ISSOCK(file->st_mode))
        return refuse_entry(w, -EINVAL,
                            "it is a socket; for a receiver of syslog write syslog: "
                            "before the path");
    if (!S_ISREG(file->st_mode) && !S_ISFIFO(file->st_mode) && !S_ISCHR(file->st_mode))
        return refuse_entry(w, -EINVAL, "it is no file, FIFO or character device");
    if (!is_planted(w, file) || file->st_uid == w->user)
        return 0;
    if (is_ours(file->st_uid))
        return refuse_entry(w, -EPERM,
                            "it has a second name (a hard link), and other users can write to its "
                            "folder, so one of them may have planted it; remove it");
    (void)snprintf(w->why, w->why_size,
                   "it belongs to user id %u, and other users can write to its folder, so one of "
                   "them may have planted it; remove it, or change its owner to user id %u",
                   (unsigned)file->st_uid, (unsigned)geteuid());
    return -EPERM;
}

/* Checks what stands under the last name, without opening it. -ENOENT: nothing. */
static int judge_last(const struct log_walk *w)
{
    struct stat file;
    return fstatat(w->fd, w->rest, &file, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : check_file(w, &file);
}

static int open_last(const struct log_walk *w)
{
    struct stat file;
    int fd = openat(w->fd, w->rest, APPEND_FLAGS | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) /* O_CREAT only now: see protected_regular in proc(5) */
        fd = openat(w->fd, w->rest, APPEND_FLAGS | O_NOFOLLOW | O_CREAT, FILE_MODE);
    if (fd < 0) {
        const int error = -errno;
        const bool is_odd = error == -ELOOP || error == -ENXIO; /* a link or a socket */
        const int judged = is_odd ? judge_last(w) : 0;
        if (error == -ENXIO && judged == 0)
            return refuse_entry(w, error,
                                "it is a FIFO, and no program reads from it; start that "
                                "program first");
        return judged < 0 && judged != -ENOENT ? judged : error;
    }
    const int rc = fstat(fd, &file) < 0 ? -errno : check_file(w, &file);
    if (rc < 0)
        (void)close(fd);
    return rc < 0 ? rc : fd;
}

/* The number of a descriptor of this process that the path names; -1: it names none. */
static int descriptor_named(const char *path)
{
    static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
    uint64_t number;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 &&
            num_parse_u64(span_text(path + strlen(folders[i])), &number) && number <= INT_MAX)
            return (int)number;
    return -1;
}

/* Opens the file of a descriptor anew. One that would not survive an execve is the server's own,
 * such as a listener: after an upgrade, those have the numbers from 3. */
static int open_descriptor(const struct log_walk *w, int own)
{
    char name[32];
    const int flags = fcntl(own, F_GETFD);
    if (own > STDERR_FILENO && flags >= 0 && (flags & FD_CLOEXEC) != 0)
        return refuse_entry(w, -EPERM,
                            "the number is that of a descriptor of the server itself, which an "
                            "upgrade numbers anew; name a file");
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", own);
    const int fd = open(name, APPEND_FLAGS);
    return fd < 0 ? -errno : fd;
}

static struct log_walk walk_for(struct log_file_opening *opening)
{
    opening->why[0] = '\0';
    return (struct log_walk){
        .fd = -1, .user = opening->user, .why = opening->why, .why_size = sizeof(opening->why)
    };
}

/* Closes what the walk has open, and gives an error its reason. */
static int end_walk(const struct log_walk *w, int rc)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    if (rc < 0 && w->why[0] == '\0')
        (void)snprintf(w->why, w->why_size, "%s", strerror(-rc));
    return rc;
}

int log_file_judge(const char *path, struct log_file_opening *opening)
{
    struct log_walk w = walk_for(opening);
    if (log_message_kind(path) != LOG_MESSAGE_NONE || descriptor_named(path) >= 0)
        return 0;
    int rc = walk_to_folder(&w, path);
    rc = rc < 0 ? rc : judge_last(&w);
    return end_walk(&w, rc == -ENOENT ? 0 : rc);
}

int log_file_open(const char *path, struct log_file_opening *opening)
{
    struct log_file_opening none = { .user = LOG_FILE_NO_USER };
    struct log_file_opening *asked = opening != NULL ? opening : &none;
    struct log_walk w = walk_for(asked);
    int rc;
    if (log_message_kind(path) != LOG_MESSAGE_NONE) {
        rc = log_message_open(path);
        if (rc < 0)
            (void)snprintf(asked->why, sizeof(asked->why), "nothing receives there: %s",
                           strerror(-rc));
        return rc;
    }
    const int own = descriptor_named(path);
    if (own >= 0) {
        rc = open_descriptor(&w, own);
    } else {
        rc = walk_to_folder(&w, path);
        rc = rc < 0 ? rc : open_last(&w);
    }
    return end_walk(&w, rc);
}
