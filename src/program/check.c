/* SPDX-License-Identifier: MIT
 *
 * `weir check`: reads a configuration as `weir serve` would, tells what is wrong
 * and, asked to, what is in force; then stops. Without side effects.
 */
#include "config/read.h"
#include "program/command.h"
#include "program/options.h"
#include "server/capacity.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *plural(unsigned count)
{
    return count == 1 ? "" : "s";
}

static void print_verdict(const struct config_store *store, const char *name)
{
    const struct config *config = config_read_result(store);
    unsigned listeners = 0, warnings = config_read_warnings(store);
    while (config->listen[listeners])
        listeners++;
    printf("%s: ok (%u site%s, %u listener%s", name, config->site_count, plural(config->site_count),
           listeners, plural(listeners));
    if (warnings > 0)
        printf(", %u warning%s", warnings, plural(warnings));
    printf(")\n");
}

/* As this user, on this machine. */
static void print_capacity(const struct config *config)
{
    char why[MODEL_WHY_MAX], text[SERVER_CAPACITY_MAX];
    unsigned workers, threads;
    const struct model *model = model_choose(span_text(config->model), why);
    server_capacity_workers(config, model, &workers, &threads);
    server_capacity_describe(config, model, workers, threads, text);
    printf("model %s, %u worker%s x %u thread%s: %s\n", model->name, workers, plural(workers),
           threads, plural(threads), text);
}

static int check(const struct program_options *options, const char *file, const char *folder)
{
    struct config_request request = {
        .file = file,
        .folder = folder,
        .flags = options->flags,
        .flag_count = options->flag_count,
        .environment = (const char *const *)environ,
        .output_is_terminal = isatty(STDOUT_FILENO) == 1,
    };
    struct config_store *store = config_read(&request);
    unsigned errors = config_read_errors(store);
    int status = PROGRAM_OK;
    config_read_print_problems(store, stderr);
    if (errors > 0) {
        fprintf(stderr, "%s: %u error%s\n", file ? file : folder, errors, plural(errors));
        status = config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
    } else {
        if (options->explain) {
            config_read_explain(store, stdout);
            putchar('\n');
            print_capacity(config_read_result(store));
        }
        print_verdict(store, file ? file : folder);
    }
    config_read_free(store);
    return status;
}

/* The argument is a folder, as for `weir serve`, or a file, as -c takes one. */
static int check_argument(const struct program_command *command,
                          const struct program_options *options)
{
    (void)command;
    const char *argument = options->argument;
    struct stat info;
    if (!argument && !options->config_file) {
        if (stat("weir.conf", &info) == 0)
            return check(options, "weir.conf", NULL);
        fprintf(stderr, "weir: nothing to check; there is no weir.conf here: weir check FILE\n");
        return PROGRAM_USAGE;
    }
    if (!argument)
        return check(options, options->config_file, NULL);
    if (stat(argument, &info) == 0 && S_ISDIR(info.st_mode))
        return check(options, options->config_file, argument);
    if (!options->config_file)
        return check(options, argument, NULL);
    fprintf(stderr, "weir: `%s` is no folder, and -c already names the configuration\n", argument);
    return PROGRAM_USAGE;
}

int program_check(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, check_argument);
}
