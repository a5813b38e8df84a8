/* SPDX-License-Identifier: MIT */
#include "config/read.h"

#include "base/nearest.h"
#include "config/file.h"
#include "config/heading.h"
#include "config/hint.h"
#include "config/rules.h"
#include "config/store.h"
#include "config/unknown.h"
#include "config/verify.h"

#include <stdlib.h>

/* ---- the file ---- */

struct file_reading {
    struct config_heading heading;
    struct span folder; /* of the file, with its final slash, or empty */
};

static void handle_section(void *context, struct span text, unsigned line)
{
    struct file_reading *reading = context;
    config_heading_read(&reading->heading, text, line);
}

static void handle_setting(void *context, struct span name, struct span value, unsigned line)
{
    struct file_reading *reading = context;
    struct config_heading *heading = &reading->heading;
    struct config_origin origin = { CONFIG_BY_FILE, heading->path, line };
    if (!heading->section) {
        struct config_reason reason;
        if (heading->any_section)
            return; /* what belongs below an unknown heading is not known */
        const struct config_setting *known = config_setting_find_anywhere(name);
        if (config_hint_explain(name, &reason))
            config_problem_error(&heading->store->problems, origin, "%s", reason.text);
        else if (known)
            config_problem_error(&heading->store->problems, origin,
                                 "`%s` stands before any section; it goes under %s", known->name,
                                 config_hint_heading(known->section));
        else
            config_problem_error(&heading->store->problems, origin,
                                 "`%.*s` stands before any section; begin with [server] or [site "
                                 "NAME]",
                                 config_problem_quote_len(name), name.at);
        return;
    }
    const struct config_setting *setting = config_setting_find(heading->section->section, name);
    if (!setting) {
        config_unknown_report(heading->store, heading->section->section, name, value, origin);
        return;
    }
    struct span plain = config_hint_strip(setting, value);
    if (plain.len < value.len)
        config_problem_error(&heading->store->problems, origin,
                             "%s: a value has no quotes, and no `;` ends it; write `%s = %.*s`",
                             setting->name, setting->name, config_problem_quote_len(plain),
                             plain.at);
    if (config_hint_has_comment(setting, plain))
        config_problem_warning(
            &heading->store->problems, origin,
            "%s: a comment has a line of its own; here `#` is a part of the value", setting->name);
    config_store_set(heading->store, heading->section, setting, plain, reading->folder, origin);
}

static void read_config_file(struct config_store *store, const char *path, bool again)
{
    struct span text, folder = span_text(path);
    while (folder.len > 0 && folder.at[folder.len - 1] != '/')
        folder.len--;
    const char *reason = config_file_load(path, again, &store->arena, &text);
    if (reason) {
        struct config_origin origin = { CONFIG_BY_FILE, path, 0 };
        config_problem_error(&store->problems, origin, "cannot be read: %s", reason);
        return;
    }
    struct file_reading reading = { { .store = store, .path = path }, folder };
    struct config_file_handler handler = { &reading, handle_section, handle_setting };
    config_file_parse(text, path, &handler, &store->problems);
}

/* ---- the environment ---- */

/* The setting of a site or a path that the variable would be of, or NULL. */
static const struct config_setting *find_without_variable(struct span variable)
{
    char name[CONFIG_VARIABLE_MAX];
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        config_setting_variable(&config_setting_table[i], name);
        if (config_setting_table[i].section != CONFIG_SERVER &&
            span_equal(variable, span_text(name)))
            return &config_setting_table[i];
    }
    return NULL;
}

/* An unknown WEIR_ variable may belong to another program. A warning appears only if the name is
 * close to a setting. */
static void report_unknown_variable(struct config_store *store, struct span name)
{
    char variable[CONFIG_VARIABLE_MAX], best[CONFIG_VARIABLE_MAX];
    unsigned best_distance = 3;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        if (config_setting_table[i].section != CONFIG_SERVER)
            continue;
        config_setting_variable(&config_setting_table[i], variable);
        unsigned distance = nearest_distance(name, span_text(variable));
        if (distance >= best_distance)
            continue;
        best_distance = distance;
        memcpy(best, variable, sizeof(best));
    }
    struct config_origin origin = { CONFIG_BY_ENVIRONMENT, config_arena_copy(&store->arena, name),
                                    0 };
    const struct config_setting *setting = find_without_variable(name);
    if (setting)
        config_problem_warning(&store->problems, origin,
                               "is not read: only settings of [server] have a variable; in a file "
                               "write `%s = %s` under %s",
                               setting->name, config_setting_placeholder(setting),
                               config_hint_heading(setting->section));
    else if (best_distance < 3)
        config_problem_warning(&store->problems, origin, "is no setting; did you mean %s?", best);
}

static void read_environment(struct config_store *store, const char *const *environment)
{
    char variable[CONFIG_VARIABLE_MAX];
    for (; environment && *environment; environment++) {
        struct span entry = span_text(*environment);
        const char *equals = memchr(entry.at, '=', entry.len);
        if (!equals || !span_starts(entry, SPAN("WEIR_")))
            continue;
        struct span name = span_first(entry, (size_t)(equals - entry.at));
        struct span value = span_trim(span_skip(entry, name.len + 1));
        const struct config_setting *setting = NULL;
        for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
            config_setting_variable(&config_setting_table[i], variable);
            if (config_setting_table[i].section == CONFIG_SERVER &&
                span_equal(name, span_text(variable)))
                setting = &config_setting_table[i];
        }
        struct config_origin origin = { CONFIG_BY_ENVIRONMENT,
                                        config_arena_copy(&store->arena, name), 0 };
        if (!setting)
            report_unknown_variable(store, name);
        else if (value.len > 0) /* an empty variable counts as not set */
            config_store_set(store, &store->server, setting, value, SPAN(""), origin);
    }
}

/* ---- the command line ---- */

static void read_folder(struct config_store *store, const char *folder)
{
    struct config_origin origin = { CONFIG_BY_ARGUMENT, folder, 0 };
    struct config_section_values *site = config_store_add_site(store, SPAN("default"), origin);
    config_store_set(store, site, &config_setting_table[SETTING_root], span_text(folder), SPAN(""),
                     origin);
}

static void read_flags(struct config_store *store, const struct config_request *request)
{
    for (size_t i = 0; i < request->flag_count; i++) {
        const struct config_flag *flag = &request->flags[i];
        const struct config_setting *setting = config_setting_find_anywhere(span_text(flag->name));
        CHECK(setting != NULL);
        struct config_origin origin = { CONFIG_BY_FLAG,
                                        config_arena_print(&store->arena, "--%s", flag->name), 0 };
        struct config_section_values *values = &store->server;
        if (setting->section == CONFIG_SITE) {
            values = request->folder ? store->sites : NULL;
            if (!values) {
                config_problem_error(
                    &store->problems, origin,
                    "applies to a folder on the command line; in a file write `%s = "
                    "%s` under [site NAME]",
                    flag->name, flag->value);
                continue;
            }
        }
        config_store_set(store, values, setting, span_trim(span_text(flag->value)), SPAN(""),
                         origin);
    }
}

/* ---- all together ---- */

static void set_defaults(struct config_store *store, struct config_section_values *values)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        const char *text = config_setting_default(setting);
        if (setting->section == values->section && text)
            config_store_set_default(store, values, setting, text, NULL);
    }
}

/* The defaults of `weir DIR` that differ, because it is for work at a terminal. */
static void set_quick_defaults(struct config_store *store, const struct config_request *request)
{
    config_store_set_default(store, store->sites, &config_setting_table[SETTING_listing], "on",
                             "for a folder on the command line");
    if (!request->file && request->output_is_terminal)
        config_store_set_default(store, &store->server, &config_setting_table[SETTING_access_log],
                                 "-", "standard output is a terminal");
}

struct config_store *config_read(const struct config_request *request)
{
    struct config_store *store = calloc(1, sizeof(*store));
    CHECK(store != NULL);
    store->problems.arena = &store->arena;
    store->server.section = CONFIG_SERVER;
    if (request->folder) /* first: it answers for all hosts that no site names */
        read_folder(store, request->folder);
    if (request->file)
        read_config_file(store, request->file, request->again);
    read_environment(store, request->environment);
    read_flags(store, request);

    if (request->folder)
        set_quick_defaults(store, request);
    set_defaults(store, &store->server);
    for (struct config_section_values *site = store->sites; site; site = site->next) {
        set_defaults(store, site);
        for (struct config_section_values *path = site->paths; path; path = path->next)
            set_defaults(store, path);
    }
    config_store_build(store);
    config_rules_build(store);
    config_verify(store, request);
    config_names_done(&store->names);
    return store;
}

const struct config *config_read_result(const struct config_store *store)
{
    CHECK(store->problems.error_count == 0);
    return &store->config;
}

unsigned config_read_errors(const struct config_store *store)
{
    return store->problems.error_count;
}

unsigned config_read_flag_errors(const struct config_store *store)
{
    return store->problems.flag_error_count;
}

unsigned config_read_warnings(const struct config_store *store)
{
    return store->problems.warning_count;
}

void config_read_print_problems(const struct config_store *store, unsigned most, FILE *out)
{
    config_problems_print(&store->problems, most, out);
}

/* ---- `weir check --explain` ---- */

enum { NAME_WIDTH = 23, VALUE_WIDTH_MAX = 44 };

static const char *shown_text(const struct config_setting *setting, const struct config_item *item)
{
    if (item && setting->kind == CONFIG_HASH)
        return "(hidden)"; /* operators send this output to others */
    return item ? item->text : setting->fallback;
}

static int value_width(const struct config_section_values *values, int width)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section != values->section)
            continue;
        const struct config_item *item = values->items[i];
        do {
            size_t len = strlen(shown_text(setting, item));
            if (len <= VALUE_WIDTH_MAX && (int)len > width)
                width = (int)len;
            item = item ? item->next : NULL;
        } while (item);
    }
    return width;
}

static void print_values(const struct config_section_values *values, int width, FILE *out)
{
    char origin[CONFIG_ORIGIN_MAX];
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section != values->section)
            continue;
        const struct config_item *item = values->items[i];
        const char *name = setting->name;
        do {
            struct config_origin from = { CONFIG_BY_DEFAULT, NULL, 0 };
            config_problem_format_origin(item ? item->origin : from, origin);
            fprintf(out, "  %-*s  %-*s  %s\n", NAME_WIDTH, name, width, shown_text(setting, item),
                    origin);
            name = "";
            item = item ? item->next : NULL;
        } while (item);
    }
}

static void print_section(const struct config_section_values *section, const char *kind, int width,
                          FILE *out)
{
    char origin[CONFIG_ORIGIN_MAX];
    config_problem_format_origin(section->origin, origin);
    int heading = NAME_WIDTH + width + 4;
    int len = (int)strlen(section->name) + (int)strlen(kind) + (int)sizeof("[ ]") - 1;
    fprintf(out, "\n[%s %s]%*s  %s\n", kind, section->name, heading > len ? heading - len : 0, "",
            origin);
    print_values(section, width, out);
}

void config_read_explain(const struct config_store *store, FILE *out)
{
    CHECK(store->problems.error_count == 0);
    int width = value_width(&store->server, 0);
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        width = value_width(site, width);
        for (const struct config_section_values *path = site->paths; path; path = path->next)
            width = value_width(path, width);
    }

    fprintf(out, "[server]\n");
    print_values(&store->server, width, out);
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        print_section(site, "site", width, out);
        for (const struct config_section_values *path = site->paths; path; path = path->next)
            print_section(path, "path", width, out);
    }
}

void config_read_site_origin(const struct config_store *store, unsigned site,
                             enum config_setting_place place, unsigned index,
                             char out[CONFIG_ORIGIN_MAX])
{
    const struct config_section_values *values = store->sites;
    while (site-- > 0)
        values = values->next;
    if (config_setting_table[place].section == CONFIG_PATH)
        for (values = values->paths; index > 0; index--)
            values = values->next;
    const struct config_item *item = config_store_first(values, place);
    while (index-- > 0)
        item = item->next;
    config_problem_format_origin(item->origin, out);
}

void config_read_label(const struct config_store *store, enum config_setting_place place,
                       size_t index, char out[CONFIG_ORIGIN_MAX])
{
    const struct config_item *item = config_store_first(&store->server, place);
    while (item && index-- > 0)
        item = item->next;
    out[0] = '\0';
    if (item)
        config_problem_format_label(item->origin, config_setting_table[place].name, out);
}

const char *config_read_text(const struct config_store *store, enum config_setting_place place)
{
    const struct config_item *item = config_store_first(&store->server, place);
    return item ? item->text : NULL;
}

void config_read_add_error(struct config_store *store, enum config_setting_place place,
                           const char *text)
{
    const struct config_item *item = config_store_first(&store->server, place);
    CHECK(item != NULL);
    config_problem_error(&store->problems, item->origin, "%s%s",
                         config_store_label(store, place, item->origin), text);
}

struct config_store *config_read_share(struct config_store *store)
{
    store->sharers++;
    return store;
}

void config_read_free(struct config_store *store)
{
    if (!store || store->sharers-- > 0)
        return;
    config_arena_done(&store->arena);
    free(store);
}
