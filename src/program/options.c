/* SPDX-License-Identifier: MIT */
#include "program/options.h"

#include "base/nearest.h"
#include "base/num.h"
#include "config/setting.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

const struct program_option program_option_table[] = {
    { "config", 'c', "FILE", PROGRAM_CONFIG_FILE, "read the configuration from FILE" },
    { "explain", 0, NULL, PROGRAM_EXPLAIN, "print every value in force and where it came from" },
    { "control", 0, "PATH", PROGRAM_CONTROL, "the control socket of the server that is meant" },
    { "now", 0, NULL, PROGRAM_NOW, "end at once, and cut off answers under way" },
    { "interval", 0, "TIME", PROGRAM_TOP, "read so often, 100ms to 60s (default 1s)" },
    { "ready-fd", 0, "N", PROGRAM_SERVE_OPTIONS,
      "write the URL of each address to descriptor N once it accepts, then close it" },
    { "quiet", 'q', NULL, PROGRAM_SERVE_OPTIONS, "print nothing at start" },
    { "request-header", 'H', "FIELD", PROGRAM_TRACE,
      "send this field, `Name: value`; may be repeated" },
    { "method", 0, "METHOD", PROGRAM_TRACE, "ask with this method rather than GET" },
    { "host", 0, "NAME", PROGRAM_TRACE, "ask for this host" },
    { "live", 0, NULL, PROGRAM_TRACE, "ask the running server too, and compare" },
    { "json", 0, NULL, PROGRAM_STATS | PROGRAM_TRACE | PROGRAM_MERGE, "print one JSON object" },
    { "csv", 0, NULL, PROGRAM_MERGE, "print a row for each step" },
    { "hgrm", 0, "FILE", PROGRAM_MERGE, "write HdrHistogram's percentile distribution" },
    { "ndjson", 0, "FILE", PROGRAM_MERGE, "write a line of JSON for each second" },
    { "slo", 0, "LIST", PROGRAM_MERGE,
      "objectives: 'p99<10ms,errors<0.1%,throughput>1000,mean<=2ms'" },
    { "prometheus", 0, NULL, PROGRAM_STATS, "print Prometheus's text format" },
    { "openmetrics", 0, NULL, PROGRAM_STATS, "print OpenMetrics 1.0" },
    { "explain", 0, NULL, PROGRAM_STATS, "say what each number means" },
    { "help", 'h', NULL, 0, "print help and stop" },
    { "version", 'V', NULL, 0, "print the version and stop" },
    { NULL, 0, NULL, 0, NULL },
};

/* What people know from elsewhere, and what it is here. */
static const struct {
    const char *name;
    const char *cure;
} elsewhere[] = {
    { "port", "an address goes with --listen PORT" },
    { "p", "an address goes with --listen PORT" },
    { "bind", "an address goes with --listen ADDRESS:PORT" },
    { "b", "an address goes with --listen ADDRESS:PORT" },
    { "address", "an address goes with --listen ADDRESS:PORT" },
    { "root", "the folder goes without an option: weir DIR" },
    { "directory", "the folder goes without an option: weir DIR" },
    { "d", "the folder goes without an option: weir DIR" },
    { "host", "names of hosts go into a file: see weir.conf(5)" },
    { "v", "the version is told by --version" },
};

struct reading {
    const struct program_command *command;
    const char *const *next; /* argument */
    struct program_options *options;
};

static bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool refuse(const char *format, ...)
{
    va_list args;
    fputs("weir: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

static bool accepts(const struct program_command *command, const struct program_option *option)
{
    return option->accepted_by == 0 || (option->accepted_by & command->accepts) != 0;
}

static bool refuse_unknown(const struct program_command *command, const char *dashes,
                           struct span name)
{
    int len = (int)name.len;
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
        if (span_equal(name, span_text(elsewhere[i].name)) &&
            (command->accepts & PROGRAM_SETTINGS) != 0)
            return refuse("there is no %s%.*s; %s", dashes, len, name.at, elsewhere[i].cure);

    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < CONFIG_SETTINGS && (command->accepts & PROGRAM_SETTINGS) != 0; i++)
        if (config_setting_has_flag(&config_setting_table[i]))
            nearest_offer(&nearest, config_setting_table[i].name);
    for (const struct program_option *option = program_option_table; option->name; option++)
        if (accepts(command, option))
            nearest_offer(&nearest, option->name);
    if (nearest.best)
        return refuse("unknown option %s%.*s; did you mean --%s?", dashes, len, name.at,
                      nearest.best);
    return refuse("unknown option %s%.*s; `weir help %s` lists them", dashes, len, name.at,
                  command->name);
}

static bool take_ready_fd(struct reading *reading, const char *value)
{
    uint64_t number;
    if (!num_parse_u64(span_text(value), &number) || number > INT_MAX)
        return refuse("--ready-fd: `%s` is not the number of a descriptor", value);
    reading->options->ready_fd = (int)number;
    return true;
}

static bool take_option(struct reading *reading, const struct program_option *option,
                        const char *value)
{
    struct program_options *options = reading->options;
    if (strcmp(option->name, "config") == 0) {
        if (options->config_file)
            return refuse("-c is given twice; there is one configuration");
        options->config_file = value;
        return true;
    }
    if (strcmp(option->name, "ready-fd") == 0)
        return take_ready_fd(reading, value);
    if (strcmp(option->name, "request-header") == 0)
        options->fields[options->field_count++] = value;
    else if (strcmp(option->name, "method") == 0)
        options->method = value;
    else if (strcmp(option->name, "host") == 0)
        options->host = value;
    else if (strcmp(option->name, "live") == 0)
        options->live = true;
    else if (strcmp(option->name, "control") == 0)
        options->control = value;
    else if (strcmp(option->name, "interval") == 0)
        options->interval = value;
    else if (strcmp(option->name, "now") == 0)
        options->now = true;
    else if (strcmp(option->name, "json") == 0)
        options->json = true;
    else if (strcmp(option->name, "csv") == 0)
        options->csv = true;
    else if (strcmp(option->name, "hgrm") == 0)
        options->hgrm = value;
    else if (strcmp(option->name, "ndjson") == 0)
        options->ndjson = value;
    else if (strcmp(option->name, "slo") == 0)
        options->slos[options->slo_count++] = value;
    else if (strcmp(option->name, "prometheus") == 0)
        options->prometheus = true;
    else if (strcmp(option->name, "openmetrics") == 0)
        options->openmetrics = true;
    else if (strcmp(option->name, "quiet") == 0)
        options->quiet = true;
    else if (strcmp(option->name, "explain") == 0)
        options->explain = true;
    return true;
}

/* The value of an option: behind its `=`, or the next argument. */
static bool take_value(struct reading *reading, const char *shown, const char *placeholder,
                       const char *attached, const char **ret_value)
{
    const char *value = attached ? attached : *reading->next;
    if (!value)
        return refuse("%s needs a value: %s %s", shown, shown, placeholder);
    if (!attached)
        reading->next++;
    *ret_value = value;
    return true;
}

static bool take_setting(struct reading *reading, const struct config_setting *setting,
                         const char *shown, const char *attached)
{
    const char *value = "on"; /* what a switch without a value means */
    const char *next = *reading->next;
    bool may_lack = setting->kind == CONFIG_SWITCH;
    bool lacks = !attached && (!next || (strcmp(next, "on") != 0 && strcmp(next, "off") != 0));
    if (!(may_lack && lacks) &&
        !take_value(reading, shown, config_setting_placeholder(setting), attached, &value))
        return false;
    struct program_options *options = reading->options;
    options->flags[options->flag_count++] = (struct config_flag){ setting->name, value };
    return true;
}

static bool take_long(struct reading *reading, const char *argument)
{
    const struct program_command *command = reading->command;
    const char *equals = strchr(argument, '=');
    struct span shown = span_of(argument, equals ? (size_t)(equals - argument) : strlen(argument));
    struct span name = span_skip(shown, 2);
    const char *attached = equals ? equals + 1 : NULL, *value = "";
    for (const struct program_option *option = program_option_table; option->name; option++) {
        if (!span_equal(name, span_text(option->name)) || !accepts(command, option))
            continue;
        if (!option->placeholder && attached)
            return refuse("--%s takes no value", option->name);
        char text[32];
        snprintf(text, sizeof(text), "--%s", option->name);
        return (!option->placeholder ||
                take_value(reading, text, option->placeholder, attached, &value)) &&
               take_option(reading, option, value);
    }
    const struct config_setting *setting = config_setting_find_anywhere(name);
    if (!setting || !config_setting_has_flag(setting))
        return refuse_unknown(command, "--", name);
    if ((command->accepts & PROGRAM_SETTINGS) == 0)
        return refuse("`weir %s` takes no --%s", command->name, setting->name);
    char text[CONFIG_VARIABLE_MAX];
    snprintf(text, sizeof(text), "--%s", setting->name);
    return take_setting(reading, setting, text, attached);
}

static bool take_short(struct reading *reading, const char *argument)
{
    const char *attached = argument[2] ? argument + 2 : NULL, *value = "";
    char shown[] = { '-', argument[1], 0 };
    for (const struct program_option *option = program_option_table; option->name; option++) {
        if (option->letter != argument[1] || !accepts(reading->command, option))
            continue;
        if (!option->placeholder && attached)
            break;
        return (!option->placeholder ||
                take_value(reading, shown, option->placeholder, attached, &value)) &&
               take_option(reading, option, value);
    }
    return refuse_unknown(reading->command, "-", span_text(argument + 1));
}

static bool take_argument(struct reading *reading, const char *argument)
{
    struct program_options *options = reading->options;
    if ((reading->command->accepts & PROGRAM_ARGUMENT) == 0)
        return refuse("`weir %s` takes no argument, and `%s` is one", reading->command->name,
                      argument);
    if (argument[0] == 0)
        return refuse("an argument is empty");
    if ((reading->command->accepts & PROGRAM_MERGE) != 0) {
        options->files[options->file_count++] = argument;
        return true;
    }
    if (options->argument && (reading->command->accepts & PROGRAM_TRACE) != 0) {
        if (options->second)
            return refuse("`%s` is an argument too many; `weir help trace` explains", argument);
        options->second = argument;
        return true;
    }
    if (options->argument)
        return refuse("`%s` and `%s` are two arguments; `weir %s` takes one", options->argument,
                      argument, reading->command->name);
    options->argument = argument;
    return true;
}

/* Help and version win over everything else on the line, right or wrong. */
static bool answer(const struct program_command *command, const char *const *arguments)
{
    for (; *arguments && strcmp(*arguments, "--") != 0; arguments++) {
        if (strcmp(*arguments, "--help") == 0 || strcmp(*arguments, "-h") == 0) {
            program_help_print(command, stdout);
            return true;
        }
        if (strcmp(*arguments, "--version") == 0 || strcmp(*arguments, "-V") == 0) {
            printf("weir %s\n", WEIR_VERSION);
            return true;
        }
    }
    return false;
}

enum program_options_result program_options_read(const struct program_command *command,
                                                 const char *const *arguments,
                                                 struct program_options *ret_options)
{
    *ret_options = (struct program_options){ .ready_fd = -1 };
    if (answer(command, arguments))
        return PROGRAM_OPTIONS_ANSWERED;
    size_t count = 0;
    while (arguments[count])
        count++;
    ret_options->flags = calloc(count + 1, sizeof(*ret_options->flags));
    ret_options->fields = calloc(count + 1, sizeof(*ret_options->fields));
    ret_options->files = calloc(count + 1, sizeof(*ret_options->files));
    ret_options->slos = calloc(count + 1, sizeof(*ret_options->slos));
    if (!ret_options->flags || !ret_options->fields || !ret_options->files || !ret_options->slos) {
        refuse("out of memory");
        return PROGRAM_OPTIONS_WRONG;
    }
    struct reading reading = { command, arguments, ret_options };
    bool good = true, only_arguments = false;
    while (good && *reading.next) {
        const char *argument = *reading.next++;
        if (only_arguments || argument[0] != '-' || argument[1] == 0)
            good = take_argument(&reading, argument);
        else if (strcmp(argument, "--") == 0)
            only_arguments = true;
        else if (argument[1] == '-')
            good = take_long(&reading, argument);
        else
            good = take_short(&reading, argument);
    }
    return good ? PROGRAM_OPTIONS_READ : PROGRAM_OPTIONS_WRONG;
}

void program_options_done(struct program_options *options)
{
    free(options->flags);
    free(options->fields);
    free(options->files);
    free(options->slos);
    options->flags = NULL;
    options->fields = NULL;
    options->files = NULL;
    options->slos = NULL;
}

int program_options_act(const struct program_command *command, const char *const *arguments,
                        program_options_action *action)
{
    struct program_options options;
    int status = PROGRAM_USAGE;
    switch (program_options_read(command, arguments, &options)) {
    case PROGRAM_OPTIONS_ANSWERED:
        status = PROGRAM_OK;
        break;
    case PROGRAM_OPTIONS_WRONG:
        break;
    case PROGRAM_OPTIONS_READ:
        status = action(command, &options);
        break;
    }
    program_options_done(&options);
    return status;
}
