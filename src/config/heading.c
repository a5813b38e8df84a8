/* SPDX-License-Identifier: MIT */
#include "config/heading.h"

#include "base/nearest.h"
#include "config/rules.h"

static bool is_site_name(struct span name)
{
    bool good = name.len > 0 && name.len <= 64;
    for (size_t i = 0; i < name.len && good; i++) {
        char c = ascii_lower(name.at[i]);
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._-", c));
    }
    return good;
}

/* Adds the site, or reports why there is none. */
static struct config_section_values *add_site(struct config_store *store, struct span name,
                                              struct config_origin origin)
{
    const struct config_section_values *site = config_store_find_site(store, name);
    if (name.len == 0)
        config_problem_error(&store->problems, origin, "a site needs a name, as in [site docs]");
    else if (!is_site_name(name))
        config_problem_error(&store->problems, origin,
                             "`%.*s` is not a site's name; use letters, digits and . _ -",
                             config_problem_quote_len(name), name.at);
    else if (!site)
        return config_store_add_site(store, name, origin);
    else if (site->origin.layer == CONFIG_BY_FILE)
        config_problem_error(&store->problems, origin,
                             "[site %s] is there twice (first on line %u)", site->name,
                             site->origin.line);
    else
        config_problem_error(&store->problems, origin,
                             "[site %s] has the name of the folder on the command line; rename it",
                             site->name);
    return config_store_new_section(store, CONFIG_SITE, name, origin);
}

static struct config_section_values *add_path(struct config_heading *heading, struct span pattern,
                                              struct config_origin origin)
{
    if (heading->site)
        return config_rules_add_path(heading->store, heading->site, pattern, origin);
    if (!heading->site_is_unknown)
        config_problem_error(&heading->store->problems, origin,
                             "[path %.*s] belongs to no site; a path stands below its [site NAME]",
                             config_problem_quote_len(pattern), pattern.at);
    return config_store_new_section(heading->store, CONFIG_PATH, pattern, origin);
}

/* Reports a heading that does not exist. If it is close to one that does, its settings are those of
 * that one. */
static void read_unknown(struct config_heading *heading, struct span text, struct span name,
                         struct config_origin origin)
{
    static const char *const names[] = { "server", "site", "path", NULL };
    static const char *const endings[] = { "", " NAME", " PATTERN" };
    static const struct {
        const char *theirs, *ours;
    } foreign[] = {
        { "global", "server" }, { "http", "server" },    { "main", "server" },
        { "vhost", "site" },    { "host", "site" },      { "virtualhost", "site" },
        { "location", "path" }, { "directory", "path" }, { "folder", "path" },
        { "route", "path" },    { "handle", "path" },    { "url", "path" },
    };
    struct span rest = text;
    struct config_problems *problems = &heading->store->problems;
    const struct span word = span_take_word(&rest);
    const char *nearest = span_starts(word, SPAN("/")) ? "path" : nearest_of(word, names);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]) && !nearest; i++)
        if (span_equal_nocase(word, span_text(foreign[i].theirs)))
            nearest = foreign[i].ours;
    unsigned kind = CONFIG_SERVER;
    while (nearest && kind < CONFIG_PATH && strcmp(names[kind], nearest) != 0)
        kind++;
    if (kind != CONFIG_PATH) {
        heading->site = NULL;
        heading->site_is_unknown = true;
    }
    heading->section = NULL;
    if (!nearest) {
        config_problem_error(problems, origin,
                             "unknown section [%.*s]; there are [server], [site NAME] and "
                             "[path PATTERN]",
                             config_problem_quote_len(text), text.at);
        return;
    }
    config_problem_error(problems, origin, "unknown section [%.*s]; did you mean [%s%s]?",
                         config_problem_quote_len(text), text.at, nearest, endings[kind]);
    heading->section =
        config_store_new_section(heading->store, (enum config_section)kind, name, origin);
    if (kind == CONFIG_SITE)
        heading->site = heading->section;
}

void config_heading_read(struct config_heading *heading, struct span text, unsigned line)
{
    struct config_store *store = heading->store;
    struct config_origin origin = { CONFIG_BY_FILE, heading->path, line };
    struct span rest = text;
    const struct span kind = span_take_word(&rest);
    struct span name = span_trim(rest);
    const char quote = name.len > 1 ? name.at[0] : 0;
    if ((quote == '"' || quote == '\'') && name.at[name.len - 1] == quote) {
        name = span_of(name.at + 1, name.len - 2);
        config_problem_error(&store->problems, origin, "a heading has no quotes; write [%.*s %.*s]",
                             config_problem_quote_len(kind), kind.at,
                             config_problem_quote_len(name), name.at);
    }
    heading->any_section = true;
    if (span_equal(kind, SPAN("path"))) {
        heading->section = add_path(heading, name, origin);
    } else if (span_equal(kind, SPAN("site"))) {
        heading->section = heading->site = add_site(store, name, origin);
    } else if (!span_equal(text, SPAN("server"))) {
        read_unknown(heading, text, name, origin);
    } else {
        if (heading->server_line > 0)
            config_problem_error(&store->problems, origin,
                                 "[server] is there twice (first on line %u)",
                                 heading->server_line);
        else
            heading->server_line = line;
        heading->section = &store->server;
        heading->site = NULL;
        heading->site_is_unknown = false;
    }
}
