/* SPDX-License-Identifier: MIT
 *
 * `weir help` and --help. What there is to set comes from settings.def, so the
 * help cannot fall behind.
 */
#include "base/nearest.h"
#include "base/span.h"
#include "config/setting.h"
#include "program/command.h"
#include "program/load.h"
#include "program/loadmerge.h"
#include "program/options.h"

enum { COLUMN = 28, WIDTH = 80 };

/* Prints words behind what stands on the line already, wrapped, in a column. */
static void print_column(FILE *out, size_t at, const char *text)
{
    if (at + 2 > COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", (int)(COLUMN - at), "");
    at = COLUMN;
    struct span rest = span_text(text);
    while (rest.len > 0) {
        struct span word = span_first(rest, strcspn(rest.at, " "));
        if (at > COLUMN && at + 1 + word.len > WIDTH) {
            fprintf(out, "\n%*s", COLUMN, "");
            at = COLUMN;
        }
        if (at > COLUMN)
            at += (size_t)fprintf(out, " ");
        fwrite(word.at, 1, word.len, out);
        at += word.len;
        rest = span_trim(span_skip(rest, word.len));
    }
    fputc('\n', out);
}

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

static void print_setting(const struct config_setting *setting, FILE *out)
{
    char text[512], value[96];
    const char *placeholder = config_setting_placeholder(setting);
    const char *const *choices = config_setting_choices(setting->kind);
    size_t len = (size_t)snprintf(text, sizeof(text), "%s", setting->sentence);
    for (size_t i = 0; choices && choices[i] && !strchr(placeholder, '|'); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i == 0 ? "; one of " : ", ",
                                choices[i]);
    if (config_setting_type(setting->kind) == CONFIG_TYPE_LIST)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "; may be repeated");
    format_default(setting, value, sizeof(value));
    snprintf(text + len, sizeof(text) - len, " %s", value);
    int at = fprintf(out, "  --%s %s", setting->name, placeholder);
    print_column(out, (size_t)at, text);
}

static void print_settings(FILE *out)
{
    for (int group = 0; group < CONFIG_GROUPS; group++) {
        bool site = group == CONFIG_GROUP_SITE;
        fprintf(out, "\n%s%s:\n", config_setting_group_title((enum config_group)group),
                site ? " (DIR)" : "");
        for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
            const struct config_setting *setting = &config_setting_table[i];
            if ((int)setting->group == group && config_setting_has_flag(setting))
                print_setting(setting, out);
        }
    }
}

static void print_options(unsigned accepts, FILE *out)
{
    fprintf(out, "\nOptions:\n");
    for (const struct program_option *option = program_option_table; option->name; option++) {
        if (option->accepted_by != 0 && (option->accepted_by & accepts) == 0)
            continue;
        char letter[] = { '-', option->letter, ',', ' ', 0 };
        int at = fprintf(out, "  %s--%s%s%s", option->letter ? letter : "", option->name,
                         option->placeholder ? " " : "",
                         option->placeholder ? option->placeholder : "");
        print_column(out, (size_t)at, option->sentence);
    }
}

static void print_load_options(const struct load_option *options, const char *title, FILE *out)
{
    fprintf(out, "\n%s:\n", title);
    for (const struct load_option *option = options; option->name; option++) {
        char letter[] = { '-', option->letter, ',', ' ', 0 };
        int at = fprintf(out, "  %s--%s%s%s", option->letter ? letter : "", option->name,
                         option->placeholder ? " " : "",
                         option->placeholder ? option->placeholder : "");
        print_column(out, (size_t)at, option->sentence);
    }
}

static void print_overview(FILE *out)
{
    fprintf(out, "weir serves folders over HTTP.\n\nUsage:\n");
    print_column(out, (size_t)fprintf(out, "  weir DIR ..."), "the same as weir serve DIR");
    for (const struct program_command *command = program_commands; command->name; command++) {
        const char *argument = command->accepts & PROGRAM_CONFIG_FILE ? " ..." : "";
        if (command->run == program_help)
            argument = " [COMMAND]";
        else if (command->accepts & PROGRAM_TRACE)
            argument = " PATH ...";
        else if (command->accepts & (PROGRAM_CONTROL | PROGRAM_STATS | PROGRAM_TOP))
            argument = " [PID]";
        else if (command->accepts & PROGRAM_LOAD)
            argument = " URL...";
        int at = fprintf(out, "  weir %s%s", command->name, argument);
        print_column(out, (size_t)at, command->sentence);
    }
    fprintf(out, "\n"
                 "Try:\n"
                 "  weir .                      this folder, on http://127.0.0.1:8080/\n"
                 "  weir help serve             everything that can be set\n"
                 "\n"
                 "Manual: weir(1), weir-load(1), weir-top(1), weir-trace(1), weir.conf(5)\n");
}

void program_help_print(const struct program_command *command, FILE *out)
{
    if (!command || command->run == program_help) {
        print_overview(out);
        return;
    }
    fprintf(out, "Usage: weir %s%s%s\n\n%s", command->name, command->usage[0] ? " " : "",
            command->usage, command->text);
    if (command->accepts & PROGRAM_LOAD) {
        print_load_options(load_option_table, "The load", out);
        print_load_options(program_load_outputs, "The result", out);
    }
    print_options(command->accepts, out);
    if (command->accepts & PROGRAM_SETTINGS) {
        print_settings(out);
        fprintf(out, "\nSIZE is a number of bytes, or 256K, 64M, 1G. TIME is 500ms, 10s, 2m or "
                     "1h.\n");
    }
}

static int help(const struct program_command *command, const struct program_options *options)
{
    (void)command;
    if (!options->argument) {
        program_help_print(NULL, stdout);
        return PROGRAM_OK;
    }
    const struct program_command *subject = program_command_find(options->argument);
    if (subject) {
        program_help_print(subject, stdout);
        return PROGRAM_OK;
    }
    struct nearest nearest = nearest_to(span_text(options->argument));
    for (const struct program_command *other = program_commands; other->name; other++)
        nearest_offer(&nearest, other->name);
    fprintf(stderr, "weir: there is no command `%s`%s%s%s\n", options->argument,
            nearest.best ? "; did you mean `" : "; see `weir help",
            nearest.best ? nearest.best : "", nearest.best ? "`?" : "`");
    return PROGRAM_USAGE;
}

int program_help(const struct program_command *command, const char *const *arguments)
{
    static const char *const asks[] = { "--help", NULL };
    if (arguments[0] && strcmp(arguments[0], "load") == 0 && arguments[1] &&
        strcmp(arguments[1], "merge") == 0)
        return program_load_merge(asks);
    return program_options_act(command, arguments, help);
}
