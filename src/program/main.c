/* SPDX-License-Identifier: MIT
 *
 * The start and the end of every command: finds the command by its name, reads its options, calls
 * it, and checks that standard output was written. `weir DIR` is `weir serve DIR`.
 */
#include "base/nearest.h"
#include "os/process.h"
#include "program/command.h"
#include "program/configuration.h"
#include "program/version.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

const struct program_command *const program_commands[] = {
    &program_serve, &program_check,      &program_reload,   &program_stop,
    &program_stats, &program_top,        &program_password, &program_trace,
    &program_load,  &program_load_merge, &program_models,   &program_help,
    NULL,
};

const struct program_command *program_command_find(const char *first, const char *second,
                                                   size_t *ret_words)
{
    char both[64];
    const struct program_command *found = NULL;
    (void)snprintf(both, sizeof(both), "%s %s", first, second ? second : "");
    for (const struct program_command *const *at = program_commands; *at; at++) {
        bool is_both = strcmp((*at)->options.name, both) == 0;
        if (!is_both && strcmp((*at)->options.name, first) != 0)
            continue;
        found = *at;
        *ret_words = is_both ? 2 : 1;
    }
    return found;
}

/* Reads the options of a command, and acts on them. Returns the exit status. */
static int run_command(const struct program_command *command, const char *const *words)
{
    struct option_refusal refusal = { .text = "out of memory" };
    int status = PROGRAM_USAGE;
    void *options = calloc(1, command->size > 0 ? command->size : 1);
    if (options && command->defaults)
        memcpy(options, command->defaults, command->size);
    bool begun = options && (!command->begin || command->begin(options));
    switch (begun ? option_read(&command->options, words, options, &refusal) : OPTION_WRONG) {
    case OPTION_GOOD:
        status = command->run(options, words);
        break;
    case OPTION_WRONG:
        fprintf(stderr, "weir: %s\n", refusal.text);
        break;
    case OPTION_ASKS_HELP:
        program_command_print_help(command, stdout);
        status = PROGRAM_OK;
        break;
    case OPTION_ASKS_VERSION:
        program_version_print(stdout);
        status = PROGRAM_OK;
        break;
    }
    if (options && command->end)
        command->end(options);
    if (options)
        option_done(&command->options, options);
    free(options);
    return status;
}

/* A word that is no command is a folder, if a file of that name exists. */
static bool is_folder(const char *word)
{
    struct stat info;
    return strchr(word, '/') || strcmp(word, ".") == 0 || stat(word, &info) == 0;
}

/* Commands of other servers. */
static const char *command_for(const char *word)
{
    static const char *const words[][2] = {
        { "run", "serve" },        { "start", "serve" },
        { "restart", "reload" },   { "test", "check" },
        { "configtest", "check" }, { "validate", "check" },
        { "status", "stats" },     { "version", "--version" },
        { "quit", "stop" },        { "hash-password", "password" },
    };
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !found; i++)
        found = strcmp(word, words[i][0]) == 0 ? words[i][1] : NULL;
    return found;
}

static int refuse_word(const char *word)
{
    struct nearest nearest = nearest_to(span_text(word));
    for (const struct program_command *const *at = program_commands; *at; at++)
        nearest_offer(&nearest, (*at)->options.name);
    const char *foreign = command_for(word);
    const char *meant = foreign ? foreign : nearest.best;
    if (meant)
        fprintf(stderr, "weir: `%s` is neither a command nor a folder; did you mean `%s`?\n", word,
                meant);
    else
        fprintf(stderr, "weir: `%s` is neither a command nor a folder; see `weir help`\n", word);
    return PROGRAM_USAGE;
}

static int run(const char *const *words)
{
    const char *word = words[0];
    size_t taken;
    if (!word) {
        program_command_print_help(NULL, stderr);
        return PROGRAM_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        program_command_print_help(NULL, stdout);
        return PROGRAM_OK;
    }
    const struct program_command *command = program_command_find(word, words[1], &taken);
    if (command)
        return run_command(command, words + taken);
    if (word[0] != '-' && !is_folder(word))
        return refuse_word(word);
    return run_command(&program_serve, words);
}

int main(int argc, char **argv)
{
    int rc = os_process_hold_standard();
    if (rc < 0) {
        fprintf(stderr, "weir: cannot open /dev/null for a closed descriptor: %s\n", strerror(-rc));
        return PROGRAM_FAILED;
    }
    rc = os_process_keep_children();
    if (rc < 0) {
        fprintf(stderr, "weir: cannot get the signal SIGCHLD: %s\n", strerror(-rc));
        return PROGRAM_FAILED;
    }
    program_configuration_init();
    int status = run((const char *const *)argv + (argc > 0));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "weir: cannot write to standard output: %s\n", strerror(errno));
        return status == PROGRAM_OK ? PROGRAM_FAILED : status;
    }
    return status;
}
