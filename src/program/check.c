/* SPDX-License-Identifier: MIT
 *
 * `weir check`: reads a configuration as `weir serve` does and reports its errors. With
 * --explain it prints every value. It has no side effects.
 */
#include "auth/file.h"
#include "log/file.h"
#include "log/message.h"
#include "os/file.h"
#include "program/certificates.h"
#include "program/command.h"
#include "program/configuration.h"
#include "program/rights.h"
#include "program/serve.h"
#include "rules/rules.h"
#include "server/auth.h"
#include "server/capacity.h"
#include "server/compression.h"
#include "server/logs.h"
#include "server/pidfile.h"
#include "server/sitefiles.h"
#include "server/stats.h"
#include "trace/path.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct check_options {
    struct program_configuration configuration;
    bool explain;
    const char *path;             /* of the arguments; NULL: none */
    struct option_list arguments; /* FILE or DIR, and a path to explain */
};

static const struct option check_rows[] = {
    { "explain", 0, NULL,
      "print every value in force and where it came from, or with PATH its rules", OPTION_PRESENT,
      OPTION_INTO(check_options, explain) },
    { .name = NULL },
};

static const struct option_group check_groups[] = {
    { .title = "Options",
      .options = program_configuration_file,
      .offset = offsetof(struct check_options, configuration) },
    { .options = check_rows },
    { .options = option_answers },
    PROGRAM_CONFIGURATION_FLAGS(offsetof(struct check_options, configuration)),
    { .options = NULL },
};

static const char *plural(unsigned count)
{
    return count == 1 ? "" : "s";
}

/* Reads a list of users. A file that this user cannot read is left out: config_read has warned of
 * it. Returns the number of errors. */
static unsigned check_list(const char *file, const char *origin, const char *site, const char *path)
{
    char why[AUTH_WHY_MAX];
    if (!file || access(file, R_OK) < 0)
        return 0;
    struct auth_file *users = auth_file_read(file, why);
    if (!users) {
        fprintf(stderr, "%s: error: %s\n", origin, why);
        return 1;
    }
    printf("site %s%s%s%s: %s has %zu user%s\n", site, path ? ", [path " : "", path ? path : "",
           path ? "]" : "", file, auth_file_count(users), plural((unsigned)auth_file_count(users)));
    auth_file_free(users);
    return 0;
}

static unsigned check_users(const struct config_store *store)
{
    const struct config *config = config_read_result(store);
    unsigned errors = 0;
    for (unsigned i = 0; i < config->site_count; i++) {
        char origin[CONFIG_ORIGIN_MAX] = "";
        const struct config_site *site = &config->sites[i];
        if (site->auth)
            config_read_site_origin(store, i, SETTING_auth, 0, origin);
        errors += check_list(site->auth, origin, site->name, NULL);
        for (unsigned path = 0; path < site->path_count; path++)
            errors += check_list(server_auth_path(site, path), site->paths[path].origin, site->name,
                                 site->paths[path].pattern);
    }
    return errors;
}

/* Says how many rules the files of each site have. `base` are the sites without their files. */
static void print_site_files(const struct config *config, const struct config_site *base)
{
    for (unsigned i = 0; i < config->site_count; i++) {
        const struct config_site *site = &config->sites[i];
        if (!site->site_rules)
            continue;
        const unsigned paths = site->rules->count - base[i].rules->count;
        const unsigned lines = site->rules->list_count;
        printf("site %s: %u path%s of _headers and %u line%s of _redirects can be used\n",
               site->name, paths, plural(paths), lines, plural(lines));
    }
}

/* Reads `_headers` and `_redirects`. Returns the number of lines that cannot be used. */
static unsigned check_site_files(const struct config *config)
{
    struct server_sitefiles files;
    char origin[CONFIG_ORIGIN_MAX], why[SERVER_SITEFILES_WHY_MAX];
    const struct config_site *base = config->sites;
    unsigned shown = 0;
    if (server_sitefiles_open(&files, &config, why) < 0)
        fprintf(stderr, "weir: %s\n", why);
    else
        print_site_files(config, base);
    for (const struct config_problem *line = files.lines.first; line; line = line->next) {
        config_problem_format_origin(line->origin, origin);
        fprintf(stderr, "%s: warning: %s\n", origin, line->text);
        shown++;
    }
    const unsigned lines = files.lines.warning_count;
    if (lines > shown)
        fprintf(stderr, "and %u more warnings\n", lines - shown);
    server_sitefiles_close(&files);
    return lines;
}

static void print_summary(const struct config_store *store, const char *name, unsigned warnings)
{
    const struct config *config = config_read_result(store);
    unsigned listeners = 0;
    while (config->listen[listeners])
        listeners++;
    printf("%s: ok (%u site%s, %u listener%s", name, config->site_count, plural(config->site_count),
           listeners, plural(listeners));
    if (warnings > 0)
        printf(", %u warning%s", warnings, plural(warnings));
    printf(")\n");
}

/* The limits of this user on this machine decide the numbers. */
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

/* With model fork, what the settings promise cannot be kept. */
static void print_compression(const struct config *config, bool explain)
{
    char why[MODEL_WHY_MAX], text[SERVER_COMPRESSION_TEXT_MAX];
    const struct model *model = model_choose(span_text(config->model), why);
    bool promised = false;
    for (unsigned i = 0; i < config->site_count; i++)
        promised = promised || server_compression_of(config, &config->sites[i], model) ==
                                   SERVER_COMPRESSION_MODEL;
    server_compression_describe(config, model, text);
    if (explain || promised)
        printf("compression: %s\n", text);
}

static int explain_path(const struct config *config, const char *path)
{
    struct server_sitefiles files;
    char reason[SERVER_SITEFILES_WHY_MAX] = "";
    const char *why = reason;
    const bool good = server_sitefiles_open(&files, &config, reason) == 0 &&
                      trace_path_explain(config, path, stdout, &why);
    if (!good)
        fprintf(stderr, "weir: `%s` %s\n", path, why);
    server_sitefiles_close(&files);
    return good ? PROGRAM_OK : PROGRAM_USAGE;
}

/* Says what is in force, or how many errors there are. Returns the exit status. */
static int report(const struct check_options *options, const struct config_store *store,
                  const char *name)
{
    unsigned errors = config_read_errors(store), warnings = config_read_warnings(store);
    int status = config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
    if (errors == 0 && options->path)
        return explain_path(config_read_result(store), options->path);
    if (errors == 0 && options->explain) {
        config_read_explain(store, stdout);
        putchar('\n');
        print_capacity(config_read_result(store));
        printf("configuration %016" PRIx64 ": `weir stats` shows this number while the same values "
               "from the same places are in force\n",
               server_stats_hash(store));
    }
    if (errors == 0)
        print_compression(config_read_result(store), options->explain);
    if (errors == 0) {
        program_certificates_check(store, &errors, &warnings);
        errors += check_users(store);
        errors += program_rights_check(store);
    }
    if (errors == 0) {
        warnings += check_site_files(config_read_result(store));
    }
    if (errors == 0) {
        print_summary(store, name, warnings);
        return PROGRAM_OK;
    }
    fprintf(stderr, "%s: %u error%s\n", name, errors, plural(errors));
    return status;
}

/* Why a start cannot write a log or the pid file, with a cure; nothing is written. A missing folder
 * is config_verify's. False: it can. */
static bool cannot_write(const struct config *config, enum config_setting_place place,
                         const char *path, char *why, size_t size)
{
    if (place == SETTING_pid_file) {
        const char *refusal = server_pidfile_refusal(path);
        if (refusal) {
            (void)snprintf(why, size, "%s", refusal);
            return true;
        }
    } else {
        const int judged = server_logs_judge(config, path, why, size);
        if (judged < 0 && strcmp(why, strerror(-judged)) != 0)
            return true;
    }
    const int rc = os_file_may_write(path);
    (void)snprintf(why, size, "%s; give this user the right to write there, or choose another file",
                   strerror(-rc));
    return rc != 0 && rc != -ENOENT;
}

/* Adds an error for each file that a start opens to write, and cannot. */
static void check_written(struct config_store *store)
{
    const struct config *config = config_read_result(store);
    const struct {
        enum config_setting_place place;
        const char *path;
    } files[] = { { SETTING_error_log, config->error_log },
                  { SETTING_access_log, config->access_log },
                  { SETTING_pid_file, config->pid_file } };
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char text[PATH_MAX + 512], why[256];
        const char *path = files[i].path;
        if (!path || !log_file_is_named(path) || log_message_kind(path) != LOG_MESSAGE_NONE ||
            !cannot_write(config, files[i].place, path, why, sizeof(why)))
            continue;
        snprintf(text, sizeof(text), "cannot write %s: %s", path, why);
        config_read_add_error(store, files[i].place, text);
    }
}

static int check(const struct check_options *options, const char *file, const char *folder)
{
    struct config_request request =
        program_configuration_request(&options->configuration, file, folder);
    struct config_store *store = program_configuration_read(&request);
    if (config_read_errors(store) == 0 && !options->path)
        check_written(store);
    config_read_print_problems(store, UINT_MAX, stderr);
    int status = report(options, store, file ? file : folder);
    config_read_free(store);
    return status;
}

/* Whether the path to explain is the first of two arguments. The second one is no path if it has no
 * slash at its beginning. If it has one, it must be a file, and the first one must not exist. */
static bool is_path_first(const struct option_list *arguments)
{
    struct stat info;
    if (arguments->count != 2 || arguments->at[0][0] != '/')
        return false;
    const bool exists = stat(arguments->at[0], &info) == 0;
    if (stat(arguments->at[1], &info) < 0)
        return !exists && arguments->at[1][0] != '/';
    return arguments->at[1][0] != '/' || (!exists && S_ISREG(info.st_mode));
}

/* Takes the path to explain from the end of the arguments. A single argument that is a file or a
 * folder is what to check, unless -c names that. */
static const char *take_path(struct check_options *options)
{
    struct option_list *arguments = &options->arguments;
    const char *last = arguments->count > 0 ? arguments->at[arguments->count - 1] : "";
    struct stat info;
    if (options->explain && is_path_first(arguments)) {
        arguments->at[1] = arguments->at[0];
        arguments->at[0] = last;
        last = arguments->at[1];
    }
    if (!options->explain || last[0] != '/' ||
        (arguments->count == 1 && !options->configuration.file && stat(last, &info) == 0))
        return NULL;
    arguments->count--;
    return last;
}

/* The argument is a folder, as for `weir serve`, or a configuration file, as for -c. */
static int run_check(void *given, const char *const *words)
{
    (void)words;
    struct check_options *options = given;
    const char *file = options->configuration.file;
    struct stat info;
    options->path = take_path(options);
    const char *argument = program_command_argument(&options->arguments);
    if (options->arguments.count > 1) {
        fprintf(stderr,
                "weir: `%s` is one argument too many; a path to explain begins with a "
                "slash and needs --explain\n",
                options->arguments.at[1]);
        return PROGRAM_USAGE;
    }
    if (!argument && !file)
        file = program_configuration_default();
    if (!argument && !file) {
        fprintf(stderr, "weir: nothing to check; this folder has no weir.conf; name a file: "
                        "weir check FILE\n");
        return PROGRAM_USAGE;
    }
    if (!argument)
        return check(options, file, NULL);
    if (stat(argument, &info) == 0 && S_ISDIR(info.st_mode))
        return check(options, file, argument);
    if (!file)
        return check(options, argument, NULL);
    fprintf(stderr, "weir: `%s` is no folder, and -c already names the configuration\n", argument);
    return PROGRAM_USAGE;
}

const struct program_command program_check = {
    .options = { .name = "check",
                 .groups = check_groups,
                 .elsewhere = program_serve_elsewhere,
                 .explain = program_configuration_explain,
                 .arguments_offset = offsetof(struct check_options, arguments),
                 .arguments_most = 2 },
    .brief = "...",
    .usage = "[FILE|DIR] [-c FILE] [--explain [PATH]] [OPTION]...",
    .sentence = "test a configuration",
    .text = "Reports every error in FILE (without one: ./weir.conf), with its line and a\n"
            "cure, for a start by the same user: a file that this user cannot read is an\n"
            "error. So is a log or a pid file that it cannot write, and a folder or an error\n"
            "page that the user of the workers cannot read. It opens no socket and writes no\n"
            "file. So it does not find an address that this machine lacks, a port that is in\n"
            "use or needs privileges, or a log socket or FIFO that no program reads from.\n"
            "\n"
            "Settings may follow as for `weir serve`, and are tested too. For each\n"
            "certificate it says whether the key belongs to it, which hosts it lacks, and\n"
            "when it ends. It says where files are not compressed although `compress` is on,\n"
            "and which lines of `_headers` and `_redirects` cannot be used. With --explain\n"
            "and the PATH of a request it prints the rules that cover it, and what they do\n"
            "together.\n"
            "\n"
            "Exit status: 0 when the configuration can be used, 1 when it cannot, 2 when the\n"
            "command line is wrong. Warnings do not count.\n"
            "\n"
            "Examples:\n"
            "  weir check weir.conf                 is it right?\n"
            "  weir check weir.conf --explain       which values apply, and where from?\n"
            "  weir check --explain .               what would `weir .` do?\n"
            "  weir check --explain /a.js           which sections cover this path?\n",
    .size = sizeof(struct check_options),
    .run = run_check,
};
