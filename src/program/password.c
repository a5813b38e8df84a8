/* SPDX-License-Identifier: MIT
 *
 * `weir password`: makes the hash for the setting `stats-password`. On a terminal it asks for
 * the password twice, without showing it; from anything else it reads one line.
 */
#include "page/password.h"
#include "program/command.h"
#include "program/configuration.h"

#include <errno.h>
#include <termios.h>
#include <unistd.h>

/* Reads one line of standard input without its end, and adds a NUL. */
static bool read_line(char out[PAGE_PASSWORD_MAX + 2])
{
    if (!fgets(out, PAGE_PASSWORD_MAX + 2, stdin))
        return false;
    size_t len = strcspn(out, "\n");
    bool whole = out[len] == '\n' || len <= PAGE_PASSWORD_MAX;
    out[len] = '\0';
    if (len > 0 && out[len - 1] == '\r')
        out[len - 1] = '\0';
    return whole;
}

static bool ask_password(const char *question, char out[PAGE_PASSWORD_MAX + 2])
{
    struct termios before, silent;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (!terminal)
        return read_line(out);
    fputs(question, stderr);
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent); /* a failure only shows the password */
    bool good = read_line(out);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
    return good;
}

static int make_hash(char first[PAGE_PASSWORD_MAX + 2], char second[PAGE_PASSWORD_MAX + 2])
{
    char hash[PAGE_PASSWORD_HASH_MAX];
    bool terminal = isatty(STDIN_FILENO) == 1;
    if (!ask_password("Password: ", first) || first[0] == '\0') {
        fprintf(stderr, "weir: a password has 1 to %d bytes\n", PAGE_PASSWORD_MAX);
        return PROGRAM_FAILED;
    }
    if (terminal && (!ask_password("Again: ", second) || strcmp(first, second) != 0)) {
        fprintf(stderr, "weir: the two are not the same\n");
        return PROGRAM_FAILED;
    }
    int rc = page_password_make(first, hash);
    if (rc < 0) {
        fprintf(stderr, "weir: cannot make a hash: %s\n", strerror(-rc));
        return PROGRAM_FAILED;
    }
    puts(hash);
    return PROGRAM_OK;
}

static int run_password(void *options, const char *const *words)
{
    (void)options, (void)words;
    char first[PAGE_PASSWORD_MAX + 2] = "", second[PAGE_PASSWORD_MAX + 2] = "";
    int status = make_hash(first, second);
    explicit_bzero(first, sizeof(first));
    explicit_bzero(second, sizeof(second));
    return status;
}

static const struct option_group password_groups[] = {
    { .title = "Options", .options = option_answers },
    { .options = NULL },
};

const struct program_command program_password = {
    .options = { .name = "password",
                 .groups = password_groups,
                 .others = program_configuration_flags },
    .brief = "",
    .usage = "",
    .sentence = "make the hash of a password for the statistics page",
    .text = "Asks for a password twice, or reads one line when standard input is no terminal.\n"
            "It prints the hash, which goes into a configuration as `stats-password = HASH`.\n"
            "The page then asks for that password, with any user name.\n"
            "\n"
            "Examples:\n"
            "  weir password\n"
            "  pwgen 20 1 | tee secret | weir password\n",
    .run = run_password,
};
