/* SPDX-License-Identifier: MIT */
#include "config/hosts.h"

/* "(line 3)", or where else the site comes from. */
static const char *describe_place(struct config_store *store, struct config_origin origin)
{
    if (origin.layer == CONFIG_BY_FILE)
        return config_arena_print(&store->arena, "(line %u)", origin.line);
    return "(on the command line)";
}

/* Two sites must not answer to the same host, or both to any host. */
static void check_hosts_differ(struct config_store *store, const struct config_section_values *site)
{
    const void *const scope = &store->config.sites;
    const struct config_item *host = config_store_first(site, SETTING_hosts);
    const struct config_section_values *other =
        host ? NULL : config_names_find(&store->names, scope, SPAN(""));
    if (other) {
        bool folder = other->origin.layer == CONFIG_BY_ARGUMENT;
        config_problem_error(&store->problems, site->origin,
                             "[site %s] has no `host`, and neither has %s %s: both would answer "
                             "any host; give this one a `host`",
                             site->name, folder ? "the folder" : other->name,
                             describe_place(store, other->origin));
    } else if (!host) {
        config_names_set(&store->names, scope, SPAN(""), site);
    }
    for (; host; host = host->next) {
        const struct span text = span_text(host->text);
        other = config_names_find(&store->names, scope, text);
        if (!other) {
            config_names_set(&store->names, scope, text, site);
            continue;
        }
        const struct config_item *first =
            config_store_find_value(store, other, SETTING_hosts, text);
        config_problem_error(&store->problems, host->origin,
                             "host: `%s` already belongs to site %s %s", host->text, other->name,
                             describe_place(store, first->origin));
    }
}

void config_hosts_verify(struct config_store *store)
{
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        check_hosts_differ(store, site);
}
