/* SPDX-License-Identifier: MIT
 *
 * The table of settings.def in memory: what settings there are, how each is
 * written, and under what names it goes in the file, the environment and on the
 * command line.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

/* How a setting is written. */
enum config_kind {
    CONFIG_LISTEN,     /* list of addresses */
    CONFIG_PAGE,       /* the same, or off */
    CONFIG_HOST,       /* list of host names */
    CONFIG_NAME,       /* list of file names */
    CONFIG_HEADER,     /* list of header lines, one at a time */
    CONFIG_FOLDER,     /* path of a folder */
    CONFIG_BELOW,      /* path of a file below the root */
    CONFIG_FILE,       /* path of a file that the server writes */
    CONFIG_LOG,        /* path or - */
    CONFIG_LOG_OR_OFF, /* path, - or off */
    CONFIG_CONTROL,    /* path of a socket, auto or off */
    CONFIG_MODEL,      /* these five: one of a few words */
    CONFIG_FORMAT,
    CONFIG_LEVEL,
    CONFIG_POLICY,
    CONFIG_POOL,
    CONFIG_WORD,     /* a name of the kernel's */
    CONFIG_USER,     /* a name of the system's */
    CONFIG_HASH,     /* of crypt(3) */
    CONFIG_COUNT,    /* unsigned; `auto` is 0 */
    CONFIG_ENTRIES,  /* uint64_t, at least 1 */
    CONFIG_SIZE,     /* uint64_t bytes */
    CONFIG_DURATION, /* uint64_t nanoseconds; 0 is no limit */
    CONFIG_DRAIN,    /* the same, but 0 is 0 */
    CONFIG_SWITCH    /* bool */
};

enum config_section { CONFIG_SERVER, CONFIG_SITE };

/* For --help and the like. */
enum config_group {
    CONFIG_GROUP_NETWORK,
    CONFIG_GROUP_PROCESS,
    CONFIG_GROUP_LOGS,
    CONFIG_GROUP_CACHE,
    CONFIG_GROUP_TIMEOUTS,
    CONFIG_GROUP_SITE,
    CONFIG_GROUPS
};

/* SETTING_listen, SETTING_connections, ...: places in the table. */
enum config_setting_place {
#define SERVER_SETTING(field, name, kind, most, fallback, group, sentence) SETTING_##field,
#define SITE_SETTING(field, name, kind, most, fallback, group, sentence)   SETTING_##field,
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
    CONFIG_SETTINGS
};

struct config_setting {
    const char *name;
    enum config_section section;
    enum config_kind kind;
    enum config_group group;
    size_t offset;        /* of the field in struct config or struct config_site */
    uint64_t most;        /* see settings.def */
    const char *fallback; /* the default, as written; see config_setting_default */
    const char *sentence;
};

/* All CONFIG_SETTINGS of them, in the order of settings.def. */
extern const struct config_setting config_setting_table[CONFIG_SETTINGS];

/* The setting of that name in that section, or NULL. */
const struct config_setting *config_setting_find(enum config_section section, struct span name);
const struct config_setting *config_setting_find_anywhere(struct span name);

/* Whether --name is an option: all but what only a file has use for. */
bool config_setting_has_flag(const struct config_setting *setting);

/* The default's text, or NULL when there is none (it says what absence means). */
const char *config_setting_default(const struct config_setting *setting);

/* The words that the kind allows, NULL at the end; NULL: any text. */
const char *const *config_setting_choices(enum config_kind kind);

/* What stands for the value in a usage line: "SIZE", "on|off". */
const char *config_setting_placeholder(const struct config_setting *setting);

/* Several values may be given; whether one text may hold several, with commas. */
bool config_setting_is_list(enum config_kind kind);
bool config_setting_has_commas(enum config_kind kind);

/* WEIR_CACHE_SIZE for cache-size. */
enum { CONFIG_VARIABLE_MAX = 64 };
void config_setting_variable(const struct config_setting *setting, char out[CONFIG_VARIABLE_MAX]);

const char *config_group_title(enum config_group group);
