/* SPDX-License-Identifier: MIT */
#include "config/root.h"

#include "config/folder.h"
#include "config/read.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool config_root_is_there(struct config_store *store, const struct config_section_values *site,
                          const struct config_item *item, enum config_setting_place place)
{
    if (config_store_first(site, SETTING_root))
        return true;
    config_problem_error(&store->problems, item->origin,
                         "%s`%s` needs a file, and [site %s] has no root; write `root = /srv/www` "
                         "or the like below the heading of the site",
                         config_store_label(store, place, item->origin), item->text, site->name);
    return false;
}

static void check_root_is_wise(struct config_store *store, const struct config_section_values *site,
                               const struct config_request *request)
{
    static const char *const broad[] = { "/",     "/home", "/root", "/etc", "/var", "/usr",
                                         "/proc", "/sys",  "/dev",  "/tmp", NULL };
    const struct config_item *root = config_store_first(site, SETTING_root);
    const char *name = config_store_label(store, SETTING_root, root->origin);
    char path[PATH_MAX], home[PATH_MAX];
    if (!realpath(root->text, path))
        return;
    for (const char *const *folder = broad; *folder; folder++)
        if (strcmp(path, *folder) == 0)
            config_problem_warning(&store->problems, root->origin,
                                   "%severything in %s that this user can read is served", name,
                                   path);
    for (const char *const *entry = request->environment; entry && *entry; entry++)
        if (strncmp(*entry, "HOME=", 5) == 0 && realpath(*entry + 5, home) &&
            strcmp(home, path) == 0 && strcmp(path, "/root") != 0 && strcmp(path, "/") != 0)
            config_problem_warning(&store->problems, root->origin,
                                   "%sthis is your home folder: everything in it is served", name);
}

/* Whether a section answers every request. Such a site needs no folder. */
static bool is_answered_by_a_rule(const struct config_section_values *site)
{
    for (const struct config_section_values *path = site->paths; path; path = path->next)
        if (strcmp(path->name, "/**") == 0 && (config_store_first(path, SETTING_redirect) ||
                                               config_store_first(path, SETTING_status)))
            return true;
    return false;
}

bool config_root_check(struct config_store *store, const struct config_section_values *site,
                       const struct config_request *request)
{
    const struct config_item *rules = config_store_first(site, SETTING_site_rules);
    if (config_store_first(site, SETTING_root)) {
        if (!config_folder_check(store, site, SETTING_root,
                                 config_store_is_on(config_store_first(site, SETTING_listing))))
            return false;
        check_root_is_wise(store, site, request);
        return true;
    }
    if (site->root_is_wrong)
        return false;
    if (is_answered_by_a_rule(site))
        return !config_store_is_on(rules) ||
               config_root_is_there(store, site, rules, SETTING_site_rules);
    config_problem_error(&store->problems, site->origin,
                         "[site %s] has no root; write `root = /srv/www` or the like below it",
                         site->name);
    return false;
}
