/* SPDX-License-Identifier: MIT
 *
 * With what a running server was started, as the kernel keeps it.
 */
#include "program/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 4096, TEXT_MAX = 2 * 1024 * 1024 };

/* A file of /proc that is words, each ended by a NUL. NULL at the end; for the program's life. */
static const char **read_words(int pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    char *text = malloc(TEXT_MAX);
    const char **words = calloc(WORDS_MAX + 1, sizeof(*words));
    size_t len = file && text ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    if (file)
        (void)fclose(file);
    if (!file || !text || !words) {
        free(text);
        free(words);
        return NULL;
    }
    text[len] = '\0';
    size_t count = 0;
    for (char *at = text; at < text + len && count < WORDS_MAX; at += strlen(at) + 1)
        words[count++] = at;
    if (count == 0)
        free(text);
    return words;
}

static int go_where(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
    return chdir(path) < 0 ? -errno : 0;
}

int program_start_read(int pid, struct program_options *ret_options,
                       const char *const **ret_environment)
{
    const char **words = read_words(pid, "cmdline");
    const char **environment = read_words(pid, "environ");
    int rc = words && words[0] && environment ? go_where(pid) : -errno;
    if (rc < 0 || !words || !words[0]) {
        fprintf(stderr,
                "weir: cannot see how process %d was started%s%s; say what it serves: -c FILE or "
                "DIR\n",
                pid, rc < 0 ? ": " : "", rc < 0 ? strerror(-rc) : "");
        return PROGRAM_FAILED;
    }
    const char *const *arguments = words + 1;
    if (arguments[0] && strcmp(arguments[0], "serve") == 0)
        arguments++;
    *ret_environment = environment;
    return program_options_read(program_command_find("serve"), arguments, ret_options) ==
                   PROGRAM_OPTIONS_READ
               ? PROGRAM_OK
               : PROGRAM_FAILED;
}
