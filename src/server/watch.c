/* SPDX-License-Identifier: MIT */
#include "server/watch.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An operator replaces a certificate and then its key, in two steps. Files are used that have been
 * the same for SETTLE_MS. */
enum { EVERY_MS = 5000, SETTLE_MS = 1000 };

/* A quick watch sees a change within a second. */
enum { QUICK_EVERY_MS = 400, QUICK_SETTLE_MS = 200, DELAY_MS = 10000 };

static uint64_t next_look_ns(const struct server_watch *watch, bool waits, uint64_t now_ns)
{
    const uint64_t every_ms = watch->quick ? QUICK_EVERY_MS : EVERY_MS;
    const uint64_t settle_ms = watch->quick ? QUICK_SETTLE_MS : SETTLE_MS;
    return now_ns + (waits ? settle_ms : every_ms) * DURATION_MS;
}

static struct server_watch_identity identify(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct server_watch_identity){ 0 };
    return (struct server_watch_identity){ status.st_dev, status.st_ino, status.st_size,
                                           status.st_mtim };
}

/* Whether a file is absent in a folder that is there. A folder that is absent is probably being
 * replaced. */
static bool is_gone(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof(folder))
        return true;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return stat(path, &status) < 0 && stat(folder, &status) == 0;
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
    watch->due_ns = next_look_ns(watch, false, os_clock_now_ns());
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
        if (!is_same(&now, &file->used) && (now.inode > 0 || (watch->quick && is_gone(file->path))))
            changed = file->path;
    }
    bool waits = changed && !settled;
    watch->due_ns = next_look_ns(watch, waits, now_ns);
    return waits ? NULL : changed;
}

void server_watch_postpone(struct server_watch *watch, const struct server_watch *refused)
{
    CHECK(watch->count == refused->count);
    for (size_t i = 0; i < watch->count; i++)
        watch->files[i].used = refused->files[i].used;
}

void server_watch_delay(struct server_watch *watch, uint64_t now_ns)
{
    watch->due_ns = now_ns + DELAY_MS * DURATION_MS;
}
