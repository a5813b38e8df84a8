/* SPDX-License-Identifier: MIT */
#include "program/start.h"

#include "program/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 4096, TEXT_MAX = 2 * 1024 * 1024 };

/* Gives the words of a file of /proc, where a NUL ends each word. NULL is at the end. One free()
 * frees words and text. */
static const char **read_words(int pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    const char **words = calloc(1, (WORDS_MAX + 1) * sizeof(*words) + TEXT_MAX);
    char *text = words ? (char *)(words + WORDS_MAX + 1) : NULL;
    size_t len = text ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    (void)fclose(file);
    size_t count = 0;
    for (char *at = text; at && at < text + len && count < WORDS_MAX; at += strlen(at) + 1)
        words[count++] = at;
    return words;
}

static int enter_folder_of(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
    return chdir(path) < 0 ? -errno : 0;
}

int program_start_read(int pid, struct program_start *ret_start)
{
    struct program_start *s = ret_start;
    s->arguments = read_words(pid, "cmdline");
    s->environment = s->arguments ? read_words(pid, "environ") : NULL;
    int rc = s->environment ? enter_folder_of(pid) : -errno;
    if (rc < 0 || !s->arguments || !s->arguments[0]) {
        fprintf(stderr,
                "weir: cannot read how process %d was started: %s; name what it serves: -c FILE or "
                "DIR\n",
                pid, rc < 0 ? strerror(-rc) : "its command line is empty");
        return PROGRAM_FAILED;
    }
    const char *const *arguments = s->arguments + 1;
    if (arguments[0] && strcmp(arguments[0], "serve") == 0)
        arguments++;
    struct option_refusal refusal;
    s->options = *(const struct program_serve_options *)program_serve.defaults;
    enum option_result result =
        option_read(&program_serve.options, arguments, &s->options, &refusal);
    if (result == OPTION_WRONG)
        fprintf(stderr, "weir: %s\n", refusal.text);
    return result == OPTION_GOOD ? PROGRAM_OK : PROGRAM_FAILED;
}

void program_start_done(struct program_start *start)
{
    option_done(&program_serve.options, &start->options);
    free(start->arguments);
    free(start->environment);
}
