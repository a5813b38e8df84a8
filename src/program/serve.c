/* SPDX-License-Identifier: MIT
 *
 * `weir serve`: reads the configuration and hands it to the server, which may ask for
 * it again.
 */
#include "config/read.h"
#include "program/command.h"
#include "program/options.h"
#include "server/inherited.h"
#include "server/master.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* `weir serve weir.conf` is a small slip with a cure of its own. */
static bool is_config_file(const char *argument)
{
    struct stat info;
    return span_ends(span_text(argument), SPAN(".conf")) && stat(argument, &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* The descriptor has to be one that whoever started us has opened. A process that takes the place
 * of another has been given a different one, and this number may mean anything. */
static bool may_tell(int ready_fd)
{
    if (ready_fd < 0 || server_inherited_is_upgrade() || fcntl(ready_fd, F_GETFD) >= 0)
        return true;
    fprintf(stderr, "weir: --ready-fd: descriptor %d is not open\n", ready_fd);
    return false;
}

static struct config_store *read_configuration(void *request)
{
    return config_read(request);
}

static int serve(const struct program_options *options)
{
    struct config_request request = {
        .file = options->config_file,
        .folder = options->argument,
        .flags = options->flags,
        .flag_count = options->flag_count,
        .environment = (const char *const *)environ,
        .output_is_terminal = isatty(STDOUT_FILENO) == 1,
    };
    struct config_store *store = config_read(&request);
    config_read_print_problems(store, stderr);
    if (config_read_errors(store) > 0) {
        int status = config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
        config_read_free(store);
        return status;
    }
    struct server_master_launch launch = {
        .ready_fd = options->ready_fd,
        .quiet = options->quiet,
        .read = read_configuration,
        .context = &request,
    };
    return server_master_run(store, &launch);
}

static int serve_argument(const struct program_command *command,
                          const struct program_options *options)
{
    (void)command;
    if (!options->argument && !options->config_file)
        fprintf(stderr, "weir: nothing to serve; give a folder (weir serve DIR) or a "
                        "configuration (weir serve -c FILE)\n");
    else if (options->argument && is_config_file(options->argument))
        fprintf(stderr, "weir: `%s` is a configuration; serve it with: weir serve -c %s\n",
                options->argument, options->argument);
    else if (may_tell(options->ready_fd))
        return serve(options);
    return PROGRAM_USAGE;
}

int program_serve(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, serve_argument);
}
