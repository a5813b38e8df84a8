/* SPDX-License-Identifier: MIT */
#include "config/store.h"

#include "config/address.h"
#include "config/value.h"

struct config_section_values *config_store_new_section(struct config_store *store,
                                                       enum config_section kind, struct span name,
                                                       struct config_origin origin)
{
    struct config_section_values *section = config_arena_take(&store->arena, sizeof(*section));
    section->section = kind;
    section->name = config_arena_copy(&store->arena, name);
    section->origin = origin;
    return section;
}

struct config_section_values *config_store_add_site(struct config_store *store, struct span name,
                                                    struct config_origin origin)
{
    struct config_section_values *site = config_store_new_section(store, CONFIG_SITE, name, origin);
    *(store->last_site ? &store->last_site->next : &store->sites) = site;
    store->last_site = site;
    config_names_set(&store->names, &store->sites, span_text(site->name), site);
    return site;
}

struct config_section_values *config_store_add_path(struct config_store *store,
                                                    struct config_section_values *site,
                                                    struct span pattern,
                                                    struct config_origin origin)
{
    struct config_section_values *path =
        config_store_new_section(store, CONFIG_PATH, pattern, origin);
    *(site->last_path ? &site->last_path->next : &site->paths) = path;
    site->last_path = path;
    config_names_set(&store->names, &site->paths, span_text(path->name), path);
    return path;
}

const struct config_section_values *config_store_find_site(const struct config_store *store,
                                                           struct span name)
{
    return config_names_find(&store->names, &store->sites, name);
}

const struct config_section_values *config_store_find_path(const struct config_store *store,
                                                           const struct config_section_values *site,
                                                           struct span pattern)
{
    return config_names_find(&store->names, &site->paths, pattern);
}

const struct config_item *config_store_find_value(const struct config_store *store,
                                                  const struct config_section_values *values,
                                                  enum config_setting_place place, struct span text)
{
    return config_names_find(&store->names, &values->items[place], text);
}

/* Appends to the list that begins at `*first`. */
static struct config_item *add_item(struct config_store *store, struct config_item **first,
                                    const char *text, struct config_origin origin)
{
    struct config_item *item = config_arena_take(&store->arena, sizeof(*item));
    *item = (struct config_item){ .text = text, .origin = origin };
    *(*first ? &(*first)->last->next : first) = item;
    (*first)->last = item;
    return item;
}

/* " (line 3)", when `first` is in the file. */
static const char *first_line(struct config_store *store, struct config_origin first)
{
    if (first.layer != CONFIG_BY_FILE)
        return "";
    return config_arena_print(&store->arena, " (first on line %u)", first.line);
}

/* Other servers separate the values of a list with spaces. */
static const char *hint_of_list(const struct config_setting *setting, struct span text)
{
    const bool is_list = config_setting_has_commas(setting->kind) && setting->kind != CONFIG_TYPES;
    const bool has_comment = memchr(text.at, '#', text.len) != NULL;
    struct span rest = text;
    (void)span_take_word(&rest);
    const struct span second = span_trim(rest);
    const char letter = second.len > 0 ? ascii_lower(second.at[0]) : 0;
    if (setting->kind == CONFIG_LISTEN && letter >= 'a' && letter <= 'z' &&
        !memchr(second.at, ':', second.len))
        return "; no word follows an address";
    return is_list && !has_comment && memchr(text.at, ' ', text.len)
               ? "; between several values write commas, not spaces"
               : "";
}

static void set_one(struct config_store *store, struct config_section_values *values,
                    const struct config_setting *setting, struct span text, struct span folder,
                    struct config_origin origin)
{
    /* In a file a problem needs the setting's name; elsewhere its origin has the name. */
    bool in_file = origin.layer == CONFIG_BY_FILE;
    const char *name = in_file ? setting->name : "", *colon = in_file ? ": " : "";
    struct config_reason reason = { .text = "" };
    const char *canonical;
    if (!config_value_check(setting, text, folder, &store->arena, &canonical, &reason)) {
        config_problem_error(&store->problems, origin, "%s%s%s%s", name, colon, reason.text,
                             hint_of_list(setting, text));
        values->root_is_wrong |= setting - config_setting_table == SETTING_root;
        return;
    }

    const enum config_setting_place place =
        (enum config_setting_place)(setting - config_setting_table);
    struct config_item **first = &values->items[place];
    if (*first && (*first)->origin.layer < origin.layer)
        *first = NULL; /* a higher layer replaces all values */
    if (config_setting_type(setting->kind) != CONFIG_TYPE_LIST) {
        if (*first && in_file)
            config_problem_error(&store->problems, origin, "%s is set twice%s", name,
                                 first_line(store, (*first)->origin));
        *first = NULL;
        (void)add_item(store, first, canonical, origin);
        return;
    }
    bool may_repeat = setting->kind == CONFIG_HEADER || setting->kind == CONFIG_RULE ||
                      ((setting->kind == CONFIG_LISTEN || setting->kind == CONFIG_PAGE) &&
                       config_address_is_any_port(span_text(canonical)));
    const struct config_item *same =
        may_repeat ? NULL : config_store_find_value(store, values, place, span_text(canonical));
    if (same && same->origin.layer == origin.layer) { /* it was not replaced */
        config_problem_error(&store->problems, origin, "%s%s`%s` is there twice%s", name, colon,
                             canonical, first_line(store, same->origin));
        return;
    }
    config_names_set(&store->names, first, span_text(canonical),
                     add_item(store, first, canonical, origin));
}

void config_store_set(struct config_store *store, struct config_section_values *values,
                      const struct config_setting *setting, struct span text, struct span folder,
                      struct config_origin origin)
{
    while (config_setting_has_commas(setting->kind)) {
        const char *comma = memchr(text.at, ',', text.len);
        if (!comma)
            break;
        size_t len = (size_t)(comma - text.at);
        set_one(store, values, setting, span_trim(span_first(text, len)), folder, origin);
        text = span_skip(text, len + 1);
    }
    set_one(store, values, setting, span_trim(text), folder, origin);
}

void config_store_set_default(struct config_store *store, struct config_section_values *values,
                              const struct config_setting *setting, const char *text,
                              const char *why)
{
    if (values->items[setting - config_setting_table])
        return;
    struct config_origin origin = { CONFIG_BY_DEFAULT, why, 0 };
    config_store_set(store, values, setting, span_text(text), SPAN(""), origin);
}

const char *config_store_label(struct config_store *store, enum config_setting_place place,
                               struct config_origin origin)
{
    if (origin.layer != CONFIG_BY_FILE)
        return "";
    return config_arena_print(&store->arena, "%s: ", config_setting_table[place].name);
}

static void build_section(struct config_store *store, const struct config_section_values *values,
                          void *section)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section != values->section)
            continue;
        size_t count = 0;
        for (const struct config_item *item = values->items[i]; item; item = item->next)
            count++;
        if (count == 0 && config_setting_type(setting->kind) != CONFIG_TYPE_LIST)
            continue; /* the field stays NULL */
        const char **texts = config_arena_take(&store->arena, (count + 1) * sizeof(*texts));
        count = 0;
        for (const struct config_item *item = values->items[i]; item; item = item->next)
            texts[count++] = item->text;
        config_value_store(setting, texts, section);
    }
}

static void build_site(struct config_store *store, const struct config_section_values *values,
                       struct config_site *site)
{
    char place[CONFIG_ORIGIN_MAX];
    config_problem_format_origin(values->origin, place);
    site->name = values->name;
    site->origin = config_arena_copy(&store->arena, span_text(place));
    build_section(store, values, site);
    for (const struct config_section_values *path = values->paths; path; path = path->next)
        site->path_count++;
    struct config_path *paths = config_arena_take(&store->arena, site->path_count * sizeof(*paths));
    site->paths = paths;
    for (const struct config_section_values *path = values->paths; path; path = path->next) {
        char origin[CONFIG_ORIGIN_MAX];
        config_problem_format_origin(path->origin, origin);
        paths->pattern = path->name;
        paths->origin = config_arena_copy(&store->arena, span_text(origin));
        build_section(store, path, paths);
        paths++;
    }
}

void config_store_build(struct config_store *store)
{
    struct config *config = &store->config;
    build_section(store, &store->server, config);
    const struct config_item *listen = store->server.items[SETTING_listen];
    config->listen_by_default = listen && listen->origin.layer == CONFIG_BY_DEFAULT;
    const struct config_item *page = store->server.items[SETTING_stats_listen];
    config->stats_listen_by_default = page && page->origin.layer == CONFIG_BY_DEFAULT;
    bool off = !config->stats || (page && strcmp(page->text, "off") == 0);
    if (off) /* an empty list */
        config->stats_listen = config_arena_take(&store->arena, sizeof(*config->stats_listen));

    unsigned count = 0;
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        count++;
    struct config_site *sites = config_arena_take(&store->arena, count * sizeof(*sites));
    config->sites = sites;
    config->site_count = count;
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        build_site(store, site, sites++);
}
