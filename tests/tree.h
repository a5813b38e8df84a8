/* SPDX-License-Identifier: MIT
 *
 * A folder of its own for a test, and short words to fill it: every path is
 * relative to that folder, every failure fails the test.
 */
#pragma once

#include "base/span.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct tree {
    char path[128]; /* absolute */
    int fd;
};

static inline void tree_make(struct tree *tree)
{
    const char *parent = getenv("TMPDIR");
    (void)snprintf(tree->path, sizeof(tree->path), "%s/weir-test-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(tree->path));
    tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(tree->fd >= 0);
}

static inline int tree_remove_one(const char *path, const struct stat *status, int kind,
                                  struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void tree_remove(struct tree *tree)
{
    (void)close(tree->fd);
    assert_int_equal(nftw(tree->path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void tree_folder(const struct tree *tree, const char *path)
{
    assert_int_equal(mkdirat(tree->fd, path, 0755), 0);
}

static inline void tree_write_bytes(const struct tree *tree, const char *path, struct span bytes)
{
    int fd = openat(tree->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.at, bytes.len), bytes.len);
    assert_int_equal(close(fd), 0);
}

static inline void tree_write(const struct tree *tree, const char *path, const char *text)
{
    tree_write_bytes(tree, path, span_text(text));
}

static inline void tree_link(const struct tree *tree, const char *path, const char *target)
{
    assert_int_equal(symlinkat(target, tree->fd, path), 0);
}

static inline void tree_remove_file(const struct tree *tree, const char *path)
{
    assert_int_equal(unlinkat(tree->fd, path, 0), 0);
}

static inline void tree_rename(const struct tree *tree, const char *from, const char *to)
{
    assert_int_equal(renameat(tree->fd, from, tree->fd, to), 0);
}

/* Sets the modification time, in nanoseconds since 1970. */
static inline void tree_date(const struct tree *tree, const char *path, int64_t modified_ns)
{
    const struct timespec time = { .tv_sec = modified_ns / 1000000000,
                                   .tv_nsec = modified_ns % 1000000000 };
    const struct timespec times[2] = { time, time };
    assert_int_equal(utimensat(tree->fd, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* `path` made absolute, in a buffer that the next call overwrites. */
static inline const char *tree_absolute(const struct tree *tree, const char *path)
{
    static char absolute[PATH_MAX];
    (void)snprintf(absolute, sizeof(absolute), "%s/%s", tree->path, path);
    return absolute;
}
