/* SPDX-License-Identifier: MIT */
#include "config/setting.h"

#include "base/check.h"
#include "config/config.h"
#include "log/layout.h"

#include <stddef.h>

const struct config_setting config_setting_table[CONFIG_SETTINGS] = {
#define SERVER_SETTING(field, name, kind, most, fallback, group, sentence) \
    { name, \
      CONFIG_SERVER, \
      CONFIG_##kind, \
      CONFIG_GROUP_##group, \
      offsetof(struct config, field), \
      UINT64_C(most), \
      fallback, \
      sentence },
#define SITE_SETTING(field, name, kind, most, fallback, group, sentence) \
    { name, \
      CONFIG_SITE, \
      CONFIG_##kind, \
      CONFIG_GROUP_##group, \
      offsetof(struct config_site, field), \
      UINT64_C(most), \
      fallback, \
      sentence },
#define PATH_SETTING(field, name, kind, most, fallback, group, sentence) \
    { name, \
      CONFIG_PATH, \
      CONFIG_##kind, \
      CONFIG_GROUP_##group, \
      offsetof(struct config_path, field), \
      UINT64_C(most), \
      fallback, \
      sentence },
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
#undef PATH_SETTING
};

const struct config_setting *config_setting_find(enum config_section section, struct span name)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section == section && span_equal(span_text(setting->name), name))
            return setting;
    }
    return NULL;
}

const struct config_setting *config_setting_find_anywhere(struct span name)
{
    const struct config_setting *setting = config_setting_find(CONFIG_SERVER, name);
    if (!setting)
        setting = config_setting_find(CONFIG_SITE, name);
    return setting ? setting : config_setting_find(CONFIG_PATH, name);
}

const struct config_setting *config_setting_find_elsewhere(enum config_section section,
                                                           struct span name)
{
    const struct config_setting *setting =
        section == CONFIG_SITE ? config_setting_find(CONFIG_PATH, name) : NULL;
    return setting ? setting : config_setting_find_anywhere(name);
}

bool config_setting_has_flag(const struct config_setting *setting)
{
    size_t place = (size_t)(setting - config_setting_table);
    /* DIR is the root, for any host. */
    return setting->section != CONFIG_PATH && place != SETTING_root && place != SETTING_hosts;
}

const char *config_setting_default(const struct config_setting *setting)
{
    return setting->fallback[0] == '(' ? NULL : setting->fallback;
}

static const char *const models[] = { "auto",
#define MODEL(name, ...) #name,
#include "model/models.def"
#undef MODEL
                                      NULL };
static const char *const etags[] = { "auto", "time", "content", NULL };
static const char *const forwarded_fields[] = { "x-forwarded-for", "forwarded", NULL };
static const char *const levels[] = { "debug", "info", "warning", "error", NULL };
static const char *const policies[] = { "sieve", "lru", NULL };
static const char *const pool_policies[] = { "park", "sticky", NULL };
static const char *const sandboxes[] = { "on", "off", "require", NULL };
static const char *const tls_policies[] = { "intermediate", "modern", NULL };
static const char *const tls_versions[] = { "1.2", "1.3", NULL };
static const char *const statuses[] = { "403", "404", "410", "451", "503", NULL };
static const char *const switches[] = { "on", "off", NULL };

static const struct {
    enum config_type type;
    const char *placeholder;
    const char *const *choices;
    bool commas;
} kinds[] = {
#define KIND(kind, type, placeholder, choices, commas) \
    [CONFIG_##kind] = { CONFIG_TYPE_##type, placeholder, choices, commas },
#include "config/kinds.def"
#undef KIND
};

const char *const *config_setting_choices(enum config_kind kind)
{
    return kinds[kind].choices;
}

const char *config_setting_placeholder(const struct config_setting *setting)
{
    return kinds[setting->kind].placeholder;
}

enum config_type config_setting_type(enum config_kind kind)
{
    return kinds[kind].type;
}

bool config_setting_has_commas(enum config_kind kind)
{
    return kinds[kind].commas;
}

void config_setting_variable(const struct config_setting *setting, char out[CONFIG_VARIABLE_MAX])
{
    size_t len = strlen(setting->name);
    CHECK(len + sizeof("WEIR_") <= CONFIG_VARIABLE_MAX);
    memcpy(out, "WEIR_", 5);
    for (size_t i = 0; i <= len; i++) {
        char c = setting->name[i];
        out[5 + i] = c == '-' ? '_' : (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
}

const char *config_setting_group_title(enum config_group group)
{
    static const char *const titles[CONFIG_GROUPS] = {
        [CONFIG_GROUP_NETWORK] = "Network",   [CONFIG_GROUP_PROCESS] = "Processes",
        [CONFIG_GROUP_LOGS] = "Logs",         [CONFIG_GROUP_CACHE] = "Cache",
        [CONFIG_GROUP_TIMEOUTS] = "Timeouts", [CONFIG_GROUP_LIMITS] = "Limits",
        [CONFIG_GROUP_SITE] = "Site",         [CONFIG_GROUP_PATH] = "Path",
    };
    return titles[group];
}
