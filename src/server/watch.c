/* SPDX-License-Identifier: MIT */
#include "server/watch.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* An operator replaces a certificate and then its key, in two steps. Files are used that have been
 * the same for SETTLE_MS. */
enum { EVERY_MS = 5000, SETTLE_MS = 1000 };

static struct server_watch_identity identify(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct server_watch_identity){ 0 };
    return (struct server_watch_identity){ status.st_dev, status.st_ino, status.st_size,
                                           status.st_mtim };
}

static bool is_same(const struct server_watch_identity *a, const struct server_watch_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

int server_watch_add(struct server_watch *watch, const char *path)
{
    struct server_watch_file *files =
        realloc(watch->files, (watch->count + 1) * sizeof(*watch->files));
    if (!files)
        return -ENOMEM;
    watch->files = files;
    struct server_watch_file *file = &files[watch->count++];
    file->path = path;
    file->used = file->seen = identify(path);
    watch->due_ns = os_clock_now_ns() + EVERY_MS * DURATION_MS;
    return 0;
}

void server_watch_close(struct server_watch *watch)
{
    free(watch->files);
    *watch = (struct server_watch){ 0 };
}

const char *server_watch_changed(struct server_watch *watch, uint64_t now_ns)
{
    const char *changed = NULL;
    bool settled = true;
    if (watch->count == 0 || now_ns < watch->due_ns)
        return NULL;
    for (size_t i = 0; i < watch->count; i++) {
        struct server_watch_file *file = &watch->files[i];
        struct server_watch_identity now = identify(file->path);
        settled = settled && is_same(&now, &file->seen);
        file->seen = now;
        if (now.inode > 0 && !is_same(&now, &file->used))
            changed = file->path;
    }
    bool waits = changed && !settled;
    watch->due_ns = now_ns + (waits ? SETTLE_MS : EVERY_MS) * DURATION_MS;
    return waits ? NULL : changed;
}

void server_watch_postpone(struct server_watch *watch, const struct server_watch *refused)
{
    CHECK(watch->count == refused->count);
    for (size_t i = 0; i < watch->count; i++)
        watch->files[i].used = refused->files[i].used;
}
