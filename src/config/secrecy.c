/* SPDX-License-Identifier: MIT */
#include "config/secrecy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || strcmp(folder, "/") == 0);
}

void config_secrecy_check(struct config_store *store, const struct config_item *item,
                          const char *name, const char *what, mode_t mode)
{
    char path[PATH_MAX], root[PATH_MAX];
    if (mode & S_IROTH)
        config_problem_warning(&store->problems, item->origin,
                               "%severy user of this machine can read the %s in `%s`; run: chmod "
                               "o-r %s",
                               name, what, item->text, item->text);
    if (!realpath(item->text, path))
        return;
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        const struct config_item *folder = config_store_first(site, SETTING_root);
        if (folder && realpath(folder->text, root) && is_below(path, root))
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` is inside the root of [site %s], so clients could read "
                                 "the %s; move it elsewhere",
                                 name, item->text, site->name, what);
    }
}
