/* SPDX-License-Identifier: MIT */
#include "server/roots.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>

/* With the start of the workers and `drain-idle`, a replaced folder is served within a second. */
enum { EVERY_MS = 250, POSTPONED_MS = 10000 };

static void note_folder(struct server_roots *roots, const char *name)
{
    roots->each[roots->count++] =
        (struct server_root){ .name = name, .opened = server_look_now(name) };
}

static void note_site(struct server_roots *roots, const struct config_site *site)
{
    if (site->root)
        note_folder(roots, site->root);
    if (site->error_pages)
        note_folder(roots, site->error_pages);
    for (const char *const *folder = site->error_folders; folder && *folder; folder++)
        note_folder(roots, *folder);
}

int server_roots_note(struct server_roots *roots, const struct config *config)
{
    *roots = (struct server_roots){ .due_ns = os_clock_now_ns() + EVERY_MS * DURATION_MS };
    size_t most = 2 * (size_t)config->site_count;
    for (unsigned i = 0; i < config->site_count; i++)
        most += config->sites[i].path_count;
    roots->each = calloc(most, sizeof(*roots->each));
    if (!roots->each)
        return -ENOMEM;
    for (unsigned i = 0; i < config->site_count; i++)
        note_site(roots, &config->sites[i]);
    return 0;
}

static void report_presence(const struct server_root *root)
{
    if (root->gone)
        log_error(LOG_ERROR,
                  "the folder %s is gone: until it is back, deleted files get 404, and renamed "
                  "ones are still served",
                  root->name);
    else
        log_error(LOG_INFO, "the folder %s is back", root->name);
}

static void note_presence(struct server_roots *roots, struct server_root *root, bool gone)
{
    if (root->gone == gone)
        return;
    root->gone = gone;
    roots->gone = gone ? roots->gone + 1 : roots->gone - 1;
    report_presence(root);
}

static bool is_another(const struct server_identity *a, const struct server_identity *b)
{
    return a->inode != b->inode || a->device != b->device;
}

const char *server_roots_moved(struct server_roots *roots, struct server_look *look,
                               uint64_t now_ns)
{
    if (now_ns < roots->due_ns)
        return NULL;
    roots->due_ns = now_ns + EVERY_MS * DURATION_MS;
    const char *moved = NULL;
    for (unsigned i = 0; i < roots->count; i++) {
        struct server_root *then = &roots->each[i];
        struct server_identity now;
        if (!server_look_at(look, then->name, &then->opened, &now))
            continue;
        if (now.is_folder && is_another(&now, &then->opened))
            moved = then->name; /* a generation that opens it follows */
        else
            note_presence(roots, then, !now.is_folder);
    }
    return moved;
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
