/* SPDX-License-Identifier: MIT */
#include "server/watch.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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

/* Whether a folder holds the absent file `path`. A folder that is absent is probably being
 * replaced. */
static bool has_folder(struct server_look *look, const char *path)
{
    char folder[PATH_MAX];
    struct server_identity found;
    const char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof(folder))
        return true;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return server_look_at(look, folder, &(struct server_identity){ 0 }, &found) && found.inode > 0;
}

static bool is_same(const struct server_identity *a, const struct server_identity *b)
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
    file->used = file->seen = server_look_now(path);
    watch->due_ns = next_look_ns(watch, false, os_clock_now_ns());
    return 0;
}

void server_watch_close(struct server_watch *watch)
{
    free(watch->files);
    *watch = (struct server_watch){ 0 };
}

const char *server_watch_changed(struct server_watch *watch, struct server_look *look,
                                 uint64_t now_ns)
{
    const char *changed = NULL;
    bool settled = true, known = true;
    if (watch->count == 0 || now_ns < watch->due_ns)
        return NULL;
    for (size_t i = 0; i < watch->count; i++) {
        struct server_watch_file *file = &watch->files[i];
        struct server_identity now;
        if (!server_look_at(look, file->path, &file->used, &now)) {
            known = false;
            continue;
        }
        settled = settled && is_same(&now, &file->seen);
        file->seen = now;
        if (!is_same(&now, &file->used) &&
            (now.inode > 0 || (watch->quick && has_folder(look, file->path))))
            changed = file->path;
    }
    const bool waits = changed && !settled;
    watch->due_ns = next_look_ns(watch, waits || !known, now_ns);
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
