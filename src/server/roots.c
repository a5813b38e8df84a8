/* SPDX-License-Identifier: MIT */
#include "server/roots.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* With the start of the workers and `drain-idle`, a replaced folder is served within a second. */
enum { EVERY_MS = 250, POSTPONED_MS = 10000 };

/* What a name stands for now. False: no folder. */
static bool identify(const char *name, struct server_root *ret_root)
{
    struct stat status;
    if (stat(name, &status) < 0 || !S_ISDIR(status.st_mode))
        return false;
    *ret_root = (struct server_root){ name, status.st_dev, status.st_ino };
    return true;
}

static void note_folder(struct server_roots *roots, const char *name)
{
    struct server_root *root = &roots->each[roots->count++];
    if (!identify(name, root))
        *root = (struct server_root){ .name = name };
}

int server_roots_note(struct server_roots *roots, const struct config *config)
{
    *roots = (struct server_roots){ .due_ns = os_clock_now_ns() + EVERY_MS * DURATION_MS };
    roots->each = calloc(2 * (size_t)config->site_count, sizeof(*roots->each));
    if (!roots->each)
        return -ENOMEM;
    for (unsigned i = 0; i < config->site_count; i++) {
        note_folder(roots, config->sites[i].root);
        if (config->sites[i].error_pages)
            note_folder(roots, config->sites[i].error_pages);
    }
    return 0;
}

const char *server_roots_moved(struct server_roots *roots, uint64_t now_ns)
{
    if (now_ns < roots->due_ns)
        return NULL;
    roots->due_ns = now_ns + EVERY_MS * DURATION_MS;
    for (unsigned i = 0; i < roots->count; i++) {
        const struct server_root *then = &roots->each[i];
        struct server_root now;
        if (identify(then->name, &now) && (now.inode != then->inode || now.device != then->device))
            return then->name;
    }
    return NULL;
}

void server_roots_postpone(struct server_roots *roots, uint64_t now_ns)
{
    roots->due_ns = now_ns + POSTPONED_MS * DURATION_MS;
}

void server_roots_close(struct server_roots *roots)
{
    free(roots->each);
    *roots = (struct server_roots){ 0 };
}
