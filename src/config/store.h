/* SPDX-License-Identifier: MIT
 *
 * One configuration while it is put together, and afterwards: the values in force of each section
 * and setting, each with its origin.
 *
 * Layers are applied in ascending order: file, environment, flags. A value of a higher layer
 * replaces all values of the lower ones.
 *
 * Private to config/; other layers use config/read.h.
 */
#pragma once

#include "config/arena.h"
#include "config/config.h"
#include "config/names.h"
#include "config/problem.h"
#include "config/setting.h"

struct config_item {
    struct config_item *next;
    struct config_item *last; /* of the list, in its first item */
    const char *text;         /* canonical (config/value.h) */
    struct config_origin origin;
};

struct config_section_values {
    struct config_section_values *next;  /* sites, or the paths of a site, in order */
    struct config_section_values *paths; /* of a site */
    struct config_section_values *last_path;
    enum config_section section;
    const char *name;            /* of a site; the pattern of a path */
    struct config_origin origin; /* its heading, or the folder on the command line */
    struct config_item *items[CONFIG_SETTINGS];
    bool root_is_wrong; /* it was given, and refused */
};

struct config_store {
    unsigned sharers; /* owners beside the first */
    struct config_arena arena;
    struct config_problems problems;
    struct config_section_values server;
    struct config_section_values *sites, *last_site;
    struct config_names names; /* until the end of config_read */
    struct config config;      /* filled by config_store_build */
};

/* Appends a site. The name is copied. */
struct config_section_values *config_store_add_site(struct config_store *store, struct span name,
                                                    struct config_origin origin);

/* Appends a path to a site. The pattern is copied. */
struct config_section_values *config_store_add_path(struct config_store *store,
                                                    struct config_section_values *site,
                                                    struct span pattern,
                                                    struct config_origin origin);

/* A section that belongs to no site and is not in force: its settings are checked, and no more. The
 * name is copied. */
struct config_section_values *config_store_new_section(struct config_store *store,
                                                       enum config_section kind, struct span name,
                                                       struct config_origin origin);

/* The site of that name, and the path of a site, or NULL. */
const struct config_section_values *config_store_find_site(const struct config_store *store,
                                                           struct span name);
const struct config_section_values *config_store_find_path(const struct config_store *store,
                                                           const struct config_section_values *site,
                                                           struct span pattern);

/* The value `text` of a list, or NULL. */
const struct config_item *config_store_find_value(const struct config_store *store,
                                                  const struct config_section_values *values,
                                                  enum config_setting_place place,
                                                  struct span text);

/* Checks the text of a setting, and adds its value or a problem to the store. Relative paths begin
 * at `folder`. */
void config_store_set(struct config_store *store, struct config_section_values *values,
                      const struct config_setting *setting, struct span text, struct span folder,
                      struct config_origin origin);

/* Sets a value, unless the setting has one. `why` explains an unusual default; or NULL. */
void config_store_set_default(struct config_store *store, struct config_section_values *values,
                              const struct config_setting *setting, const char *text,
                              const char *why);

/* The first value in force, or NULL. */
static inline const struct config_item *config_store_first(
    const struct config_section_values *values, enum config_setting_place place)
{
    return values->items[place];
}

/* Whether `item`, a value of a switch, is `on`. NULL is not. */
static inline bool config_store_is_on(const struct config_item *item)
{
    return item && strcmp(item->text, "on") == 0;
}

/* The start of a message: "root: ", or "" where the origin of the problem has the name already. */
const char *config_store_label(struct config_store *store, enum config_setting_place place,
                               struct config_origin origin);

/* Fills store->config with what is in force; every setting with a default has a value. */
void config_store_build(struct config_store *store);
