/* SPDX-License-Identifier: MIT */
#include "program/configuration.h"

#include "config/hint.h"
#include "option/help.h"
#include "os/process.h"
#include "server/capacity.h"

#include <stdlib.h>
#include <unistd.h>

const struct option program_configuration_file[] = {
    { "config", 'c', "FILE", "read the configuration from FILE", OPTION_ONCE,
      OPTION_INTO(program_configuration, file) },
    { .name = NULL },
};

struct option program_configuration_flags[CONFIG_SETTINGS + 1];

/* ---- reading ---- */

static bool read_flag(void *into, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    struct program_configuration *c = into;
    struct config_flag *more = reallocarray(c->flags, c->flag_count + 1, sizeof(*more));
    if (!more)
        return option_refuse(refusal, "out of memory");
    c->flags = more;
    c->flags[c->flag_count++] = (struct config_flag){ option->name, value };
    return true;
}

/* A shell would make two words of a field. In a file its value has no quotes. */
static const char *placeholder_of(const struct config_setting *setting)
{
    return setting->kind == CONFIG_HEADER ? "'NAME: VALUE'" : config_setting_placeholder(setting);
}

void program_configuration_init(void)
{
    size_t count = 0;
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (config_setting_has_flag(setting))
            program_configuration_flags[count++] = (struct option){
                .name = setting->name,
                .placeholder = placeholder_of(setting),
                .sentence = setting->sentence,
                .kind = setting->kind == CONFIG_SWITCH ? OPTION_SWITCH : OPTION_READ,
                .read = read_flag,
            };
    }
}

bool program_configuration_explain(struct span name, struct option_refusal *refusal)
{
    struct config_reason reason;
    if (!config_hint_explain_option(name, &reason))
        return false;
    (void)option_refuse(refusal, "%s", reason.text);
    return true;
}

void program_configuration_done(void *configuration)
{
    struct program_configuration *c = configuration;
    free(c->flags);
    c->flags = NULL;
    c->flag_count = 0;
}

struct config_request program_configuration_request(
    const struct program_configuration *configuration, const char *file, const char *folder)
{
    return (struct config_request){
        .file = file,
        .folder = folder,
        .flags = configuration->flags,
        .flag_count = configuration->flag_count,
        .environment = (const char *const *)environ,
        .output_is_terminal = isatty(STDOUT_FILENO) == 1,
        .size_cache = server_capacity_size_cache,
    };
}

const char *program_configuration_default(void)
{
    return access("weir.conf", F_OK) == 0 ? "weir.conf" : NULL;
}

static void check_user(struct config_store *store)
{
    const char *name = config_read_text(store, SETTING_user);
    struct os_process_user user;
    char text[256];
    if (!name)
        return;
    bool found = os_process_find_user(name, &user) == 0;
    if (found && (user.uid == geteuid() || os_process_can_become(&user)))
        return;
    (void)snprintf(text, sizeof(text),
                   found ? "this process may not become `%s`; start as root, or remove the setting"
                         : "there is no user `%s`; create it, or name another user",
                   name);
    config_read_add_error(store, SETTING_user, text);
}

struct config_store *program_configuration_read(const struct config_request *request)
{
    struct config_store *store = config_read(request);
    check_user(store);
    return store;
}

/* ---- help ---- */

/* "(default 64M)", or in parentheses what the absence of the setting means. */
static void format_default(const struct config_setting *setting, char *out, size_t size)
{
    const char *text = config_setting_default(setting);
    if (setting == &config_setting_table[SETTING_listing])
        snprintf(out, size, "(default on for DIR, %s in a file)", text);
    else if (setting == &config_setting_table[SETTING_access_log])
        snprintf(out, size, "(default %s, but - for DIR alone on a terminal)", text);
    else if (text)
        snprintf(out, size, "(default %s)", text);
    else
        snprintf(out, size, "%s", setting->fallback);
}

static void print_flag(const struct option *option, const struct config_setting *setting, FILE *out)
{
    char text[512], value[96];
    const char *const *choices = config_setting_choices(setting->kind);
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", setting->sentence);
    for (size_t i = 0; choices && choices[i] && !strchr(option->placeholder, '|'); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i == 0 ? "; one of " : ", ",
                                choices[i]);
    if (config_setting_type(setting->kind) == CONFIG_TYPE_LIST)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "; may be repeated");
    format_default(setting, value, sizeof(value));
    snprintf(text + len, sizeof(text) - len, " %s", value);
    option_help_option(out, option, text);
}

void program_configuration_print(FILE *out)
{
    for (int group = 0; group < CONFIG_GROUPS; group++) {
        bool site = group == CONFIG_GROUP_SITE;
        if (group == CONFIG_GROUP_PATH)
            continue; /* only a file has paths */
        fprintf(out, "\n%s%s:\n", config_setting_group_title((enum config_group)group),
                site ? " (DIR)" : "");
        for (const struct option *option = program_configuration_flags; option->name; option++) {
            const struct config_setting *setting =
                config_setting_find_anywhere(span_text(option->name));
            if ((int)setting->group == group)
                print_flag(option, setting, out);
        }
    }
    fprintf(out, "\nSIZE is a number of bytes, or 256K, 64M, 1G. TIME is 500ms, 10s, 2m or 1h.\n");
}
