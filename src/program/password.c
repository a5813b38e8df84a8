/* SPDX-License-Identifier: MIT
 *
 * `weir password`: makes the hash that `stats-password` wants. Asked for twice on a
 * terminal, without showing it; read once from anything else.
 */
#include "page/password.h"
#include "program/command.h"
#include "program/options.h"

#include <errno.h>
#include <termios.h>
#include <unistd.h>

/* One line of standard input, without its end; a NUL is behind it. */
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

static bool ask(const char *question, char out[PAGE_PASSWORD_MAX + 2])
{
    struct termios before, silent;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (!terminal)
        return read_line(out);
    fputs(question, stderr);
    silent = before;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent); /* it is asked for all the same */
    bool good = read_line(out);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', stderr);
    return good;
}

static int make_of(char first[PAGE_PASSWORD_MAX + 2], char second[PAGE_PASSWORD_MAX + 2])
{
    char hash[PAGE_PASSWORD_HASH_MAX];
    bool terminal = isatty(STDIN_FILENO) == 1;
    if (!ask("Password: ", first) || first[0] == '\0') {
        fprintf(stderr, "weir: a password has 1 to %d bytes\n", PAGE_PASSWORD_MAX);
        return PROGRAM_FAILED;
    }
    if (terminal && (!ask("Again: ", second) || strcmp(first, second) != 0)) {
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

static int make(const struct program_command *command, const struct program_options *options)
{
    (void)command, (void)options;
    char first[PAGE_PASSWORD_MAX + 2] = "", second[PAGE_PASSWORD_MAX + 2] = "";
    int status = make_of(first, second);
    explicit_bzero(first, sizeof(first));
    explicit_bzero(second, sizeof(second));
    return status;
}

int program_password(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, make);
}
