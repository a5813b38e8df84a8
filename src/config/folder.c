/* SPDX-License-Identifier: MIT */
#include "config/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "`/srv/www` ", or "" where the origin of the problem is that path. */
static const char *quoted_path(struct config_store *store, const struct config_item *item)
{
    if (item->origin.layer == CONFIG_BY_ARGUMENT)
        return "";
    return config_arena_print(&store->arena, "`%s` ", item->text);
}

static bool may_enter(const char *folder)
{
    return faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) == 0;
}

/* The first folder on the way to `path` that this user may not enter: a folder above it, or `path`
 * itself. NULL: links lead elsewhere. */
static const char *closed_folder(struct config_store *store, const char *path)
{
    const struct span whole = span_text(path);
    for (size_t len = 1; len <= whole.len; len++) {
        if (len < whole.len && path[len] != '/')
            continue;
        const char *part = config_arena_copy(&store->arena, span_first(whole, len));
        if (!may_enter(part))
            return errno == EACCES ? part : NULL;
    }
    return NULL;
}

static void report(struct config_store *store, const struct config_item *item, const char *name,
                   int error, bool to_list)
{
    const char *path = quoted_path(store, item);
    const char *closed = error == EACCES ? closed_folder(store, item->text) : NULL;
    if (closed || (error == EACCES && to_list))
        config_problem_error(&store->problems, item->origin,
                             "%s%scannot be served: this user may not %s %s; give the right with "
                             "chmod or setfacl, or start weir as another user",
                             name, path, closed ? "enter" : "list", closed ? closed : item->text);
    else
        config_problem_error(&store->problems, item->origin, "%s%scannot be served: %s", name, path,
                             error == ENOENT ? "there is no such folder" : strerror(error));
}

bool config_folder_check(struct config_store *store, const struct config_section_values *section,
                         enum config_setting_place place, bool to_list)
{
    const struct config_item *item = config_store_first(section, place);
    struct stat info;
    if (!item)
        return false;
    const char *name = config_store_label(store, place, item->origin);
    if (stat(item->text, &info) < 0) {
        report(store, item, name, errno, false);
        return false;
    }
    if (!S_ISDIR(info.st_mode)) {
        config_problem_error(&store->problems, item->origin, "%s%sis a file; name its folder", name,
                             quoted_path(store, item));
        return false;
    }
    if (faccessat(AT_FDCWD, item->text, to_list ? X_OK | R_OK : X_OK, AT_EACCESS) < 0) {
        report(store, item, name, errno, to_list);
        return false;
    }
    return true;
}
