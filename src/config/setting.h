/* SPDX-License-Identifier: MIT
 *
 * The table of settings.def in memory: every setting, how its value is written, and its names in
 * the file, in the environment and on the command line.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* CONFIG_LISTEN, ...: how a setting is written (config/kinds.def). */
enum config_kind {
#define KIND(kind, ...) CONFIG_##kind,
#include "config/kinds.def"
#undef KIND
};

/* The type of a setting's field. */
enum config_type {
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_LIST,
    CONFIG_TYPE_COUNT,
    CONFIG_TYPE_NUMBER,
    CONFIG_TYPE_SWITCH
};

enum config_section { CONFIG_SERVER, CONFIG_SITE, CONFIG_PATH };

/* The groups of --help. */
enum config_group {
    CONFIG_GROUP_NETWORK,
    CONFIG_GROUP_PROCESS,
    CONFIG_GROUP_LOGS,
    CONFIG_GROUP_CACHE,
    CONFIG_GROUP_TIMEOUTS,
    CONFIG_GROUP_LIMITS,
    CONFIG_GROUP_SITE,
    CONFIG_GROUP_PATH,
    CONFIG_GROUPS
};

/* SETTING_listen, SETTING_connections, ...: places in the table. */
enum config_setting_place {
#define SERVER_SETTING(field, name, kind, most, fallback, group, sentence) SETTING_##field,
#define SITE_SETTING(field, name, kind, most, fallback, group, sentence)   SETTING_##field,
#define PATH_SETTING(field, name, kind, most, fallback, group, sentence)   SETTING_##field,
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
#undef PATH_SETTING
    CONFIG_SETTINGS
};

struct config_setting {
    const char *name;
    enum config_section section;
    enum config_kind kind;
    enum config_group group;
    size_t offset;        /* of the field in the struct of its section (config.h) */
    uint64_t most;        /* see settings.def */
    const char *fallback; /* the default, as written; see config_setting_default */
    const char *sentence;
};

/* All CONFIG_SETTINGS of them, in the order of settings.def. */
extern const struct config_setting config_setting_table[CONFIG_SETTINGS];

/* The setting of that name in that section, or NULL. The second looks in [server] first, then in
 * [site NAME], then in [path PATTERN]: a site and its paths share some names. */
const struct config_setting *config_setting_find(enum config_section section, struct span name);
const struct config_setting *config_setting_find_anywhere(struct span name);

/* Where a name that `section` lacks belongs, or NULL: of a site, in its paths first. */
const struct config_setting *config_setting_find_elsewhere(enum config_section section,
                                                           struct span name);

/* Whether --name is a flag: all settings of the server, and those of a site except `root` and
 * `host`, which the folder on the command line replaces. */
bool config_setting_has_flag(const struct config_setting *setting);

/* The default as text, or NULL if there is none (`fallback` then says what absence means). */
const char *config_setting_default(const struct config_setting *setting);

/* The words that the kind allows, NULL at the end; NULL: any text. */
const char *const *config_setting_choices(enum config_kind kind);

/* The placeholder for the value in a file or a usage line: "SIZE", "on|off". */
const char *config_setting_placeholder(const struct config_setting *setting);

enum config_type config_setting_type(enum config_kind kind);

/* Whether one text may hold several values, separated by commas. */
bool config_setting_has_commas(enum config_kind kind);

/* WEIR_CACHE_SIZE for cache-size. */
enum { CONFIG_VARIABLE_MAX = 64 };
void config_setting_variable(const struct config_setting *setting, char out[CONFIG_VARIABLE_MAX]);

/* The heading of a group. */
const char *config_setting_group_title(enum config_group group);
