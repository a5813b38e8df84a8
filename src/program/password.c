/* SPDX-License-Identifier: MIT
 *
 * `weir password`: makes the hash for the setting `stats-password`, or with the name of a user a
 * line for the file of the setting `auth`. On a terminal it asks for the password twice, without
 * showing it; from anything else it reads one line.
 */
#include "auth/basic.h"
#include "auth/file.h"
#include "program/command.h"
#include "program/configuration.h"

#include <errno.h>
#include <termios.h>
#include <unistd.h>

/* Reads one line of standard input without its end, and adds a NUL. */
static bool read_line(char out[AUTH_PASSWORD_MAX + 2])
{
    if (!fgets(out, AUTH_PASSWORD_MAX + 2, stdin))
        return false;
    size_t len = strcspn(out, "\n");
    bool whole = out[len] == '\n' || len <= AUTH_PASSWORD_MAX;
    out[len] = '\0';
    if (len > 0 && out[len - 1] == '\r')
        out[len - 1] = '\0';
    return whole;
}

static bool ask_password(const char *question, char out[AUTH_PASSWORD_MAX + 2])
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

struct password_options {
    struct option_list user;
};

/* Whether a line can begin with it. It is asked before the password is. */
static bool is_user(const char *user)
{
    return strlen(user) <= AUTH_USER_MAX && !strpbrk(user, ":#\n\r");
}

/* A line that the server accepts. False: the name of the user is wrong. */
static bool print_line(const char *user, const char *hash)
{
    unsigned number;
    const char *why;
    char line[AUTH_USER_MAX + AUTH_HASH_MAX + 2];
    int len = snprintf(line, sizeof(line), "%s:%s", user, hash);
    struct auth_file *file = auth_file_parse(span_of(line, (size_t)len), &number, &why);
    if (file)
        puts(line);
    else
        fprintf(stderr, "weir: %s\n", why);
    auth_file_free(file);
    return file != NULL;
}

static int make_hash(const char *user, char first[AUTH_PASSWORD_MAX + 2],
                     char second[AUTH_PASSWORD_MAX + 2])
{
    char hash[AUTH_HASH_MAX];
    bool terminal = isatty(STDIN_FILENO) == 1;
    if (!ask_password("Password: ", first) || first[0] == '\0') {
        fprintf(stderr, "weir: a password has 1 to %d bytes\n", AUTH_PASSWORD_MAX);
        return PROGRAM_FAILED;
    }
    if (terminal && (!ask_password("Again: ", second) || strcmp(first, second) != 0)) {
        fprintf(stderr, "weir: the two are not the same\n");
        return PROGRAM_FAILED;
    }
    int rc = auth_hash_make(first, hash);
    if (rc < 0) {
        fprintf(stderr, "weir: cannot make a hash: %s\n", strerror(-rc));
        return PROGRAM_FAILED;
    }
    if (user)
        return print_line(user, hash) ? PROGRAM_OK : PROGRAM_FAILED;
    puts(hash);
    return PROGRAM_OK;
}

static int run_password(void *options, const char *const *words)
{
    (void)words;
    const struct password_options *given = options;
    char first[AUTH_PASSWORD_MAX + 2] = "", second[AUTH_PASSWORD_MAX + 2] = "";
    const char *user = program_command_argument(&given->user);
    if (user && !is_user(user)) {
        fprintf(stderr, "weir: a user name has at most %d bytes, and no colon or #\n",
                AUTH_USER_MAX);
        return PROGRAM_USAGE;
    }
    int status = make_hash(user, first, second);
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
                 .others = program_configuration_flags,
                 .arguments_offset = offsetof(struct password_options, user),
                 .arguments_most = 1 },
    .brief = "...",
    .usage = "[USER]",
    .sentence = "make the hash of a password, for a site or for the statistics page",
    .text = "Asks for a password twice, or reads one line when standard input is no terminal.\n"
            "With a USER it prints a line for a file of users. The setting `auth = FILE` of a\n"
            "site names that file. Without one it prints the hash, which goes into a\n"
            "configuration as `stats-password = HASH`. The statistics page then asks for that\n"
            "password, with any user name.\n"
            "\n"
            "Examples:\n"
            "  weir password alice >> /etc/weir/users\n"
            "  weir password\n"
            "  pwgen 20 1 | tee secret | weir password\n",
    .size = sizeof(struct password_options),
    .run = run_password,
};
