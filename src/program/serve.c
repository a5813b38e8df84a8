/* SPDX-License-Identifier: MIT
 *
 * `weir serve`: reads the configuration and hands it to the server, which reads it again at
 * each reload.
 */
#include "program/serve.h"

#include "program/command.h"
#include "server/inherited.h"
#include "server/master.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static const struct option serve_rows[] = {
    { "ready-fd", 0, "N",
      "write the URL of each address to descriptor N once it accepts, then close it", OPTION_NUMBER,
      OPTION_INTO(program_serve_options, ready_fd), .most = INT_MAX },
    { "quiet", 'q', NULL, "print nothing at start", OPTION_PRESENT,
      OPTION_INTO(program_serve_options, quiet) },
    { .name = NULL },
};

static const struct option_group serve_groups[] = {
    { .title = "Options",
      .options = program_configuration_file,
      .offset = offsetof(struct program_serve_options, configuration) },
    { .options = serve_rows },
    { .options = option_answers },
    PROGRAM_CONFIGURATION_FLAGS(offsetof(struct program_serve_options, configuration)),
    { .options = NULL },
};

/* A configuration file in the place of a folder is a frequent slip. */
static bool is_config_file(const char *argument)
{
    struct stat info;
    return span_ends(span_text(argument), SPAN(".conf")) && stat(argument, &info) == 0 &&
           S_ISREG(info.st_mode);
}

/* The process that starts the server opens the descriptor. After an upgrade the number means
 * nothing: the new process did not inherit that descriptor. */
static bool can_report_ready(int ready_fd)
{
    if (ready_fd < 0 || server_inherited_is_upgrade() || fcntl(ready_fd, F_GETFD) >= 0)
        return true;
    fprintf(stderr, "weir: --ready-fd: descriptor %d is not open\n", ready_fd);
    return false;
}

static struct config_store *read_again(void *request)
{
    struct config_request again = *(const struct config_request *)request;
    again.again = true;
    return program_configuration_read(&again);
}

static int serve(const struct program_serve_options *options, const char *file, const char *folder)
{
    struct config_request request =
        program_configuration_request(&options->configuration, file, folder);
    request.again = server_inherited_is_upgrade();
    struct config_store *store = program_configuration_read(&request);
    config_read_print_problems(store, CONFIG_PROBLEMS_SHOWN, stderr);
    if (config_read_errors(store) > 0) {
        int status = config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
        config_read_free(store);
        return status;
    }
    struct server_master_launch launch = {
        .ready_fd = options->ready_fd,
        .quiet = options->quiet,
        .read = read_again,
        .context = &request,
    };
    return server_master_run(store, &launch);
}

static int run_serve(void *given, const char *const *words)
{
    (void)words;
    const struct program_serve_options *options = given;
    const char *folder = program_command_argument(&options->folder);
    const char *file = options->configuration.file;
    if (!folder && !file)
        file = program_configuration_default();
    if (!folder && !file)
        fprintf(stderr, "weir: nothing to serve, since this folder has no weir.conf; give a folder "
                        "(weir serve DIR) or a configuration (weir serve -c FILE)\n");
    else if (folder && is_config_file(folder))
        fprintf(stderr, "weir: `%s` is a configuration; serve it with: weir serve -c %s\n", folder,
                folder);
    else if (can_report_ready(options->ready_fd))
        return serve(options, file, folder);
    return PROGRAM_USAGE;
}

const struct option_elsewhere program_serve_elsewhere[] = {
    { "-p", "write --listen PORT" },
    { "-l", "write --listen PORT" },
    { "-b", "write --listen ADDRESS:PORT" },
    { "-d", "the folder goes without an option: weir DIR" },
    { "-v", "--version prints the version" },
    { "-t", "`weir check` tests a configuration" },
    { "-s", "`weir reload` and `weir stop` reach a running server" },
    { NULL, NULL },
};

const struct program_command program_serve = {
    .options = { .name = "serve",
                 .groups = serve_groups,
                 .elsewhere = program_serve_elsewhere,
                 .explain = program_configuration_explain,
                 .arguments_offset = offsetof(struct program_serve_options, folder),
                 .arguments_most = 1 },
    .brief = "...",
    .usage = "[DIR] [-c FILE] [OPTION]...",
    .sentence = "serve a folder, or the sites of a configuration file",
    .text = "With DIR alone the server is for yourself: it accepts from this machine only, on\n"
            "port 8080, lists folders, and logs requests to the terminal. With -c it serves\n"
            "the sites of FILE. With both, DIR answers for the hosts that FILE does not name.\n"
            "With neither it serves the sites of ./weir.conf.\n"
            "\n"
            "Options win over environment variables, variables over the file, and the file\n"
            "over the defaults. The variable of --cache-size is WEIR_CACHE_SIZE, and so on;\n"
            "the settings of a site have none.\n"
            "\n"
            "Examples:\n"
            "  weir .                               this folder, on http://127.0.0.1:8080/\n"
            "  weir public --listen '*:8080'        for other machines too\n"
            "  weir dist --spa index.html           a single-page application\n"
            "  weir . --listen https://localhost:8443   with TLS, for this machine\n"
            "  weir serve -c /etc/weir/weir.conf    sites, from a file (weir.conf(5))\n",
    .size = sizeof(struct program_serve_options),
    .defaults = &(const struct program_serve_options){ .ready_fd = -1 },
    .run = run_serve,
};
