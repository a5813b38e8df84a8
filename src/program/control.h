/* SPDX-License-Identifier: MIT
 *
 * A running server, from the outside: finding the one that is meant, and asking it
 * something over its control socket (server/control.h).
 */
#pragma once

#include "program/options.h"

#include <sys/types.h>

struct program_master {
    pid_t pid;
    int fd; /* connected to its control socket */
};

/* Finds and reaches the server that the options name, or the only one there is, for
 * `weir command`. Returns PROGRAM_OK, or the exit status after having said why not. */
int program_control_find(const char *command, const struct program_options *options,
                         struct program_master *ret_master);

/* Where it listens: the first of its addresses, as a URL; false when it does not say. Closes the
 * connection. */
bool program_control_url(struct program_master *master, char *out, size_t size);

enum program_control_answer {
    PROGRAM_CONTROL_OK,
    PROGRAM_CONTROL_FAILED,
    PROGRAM_CONTROL_CUT /* the connection ended before the last line */
};

/* Asks, and waits for the outcome. What the server says goes to standard error; what it
 * says while one waits only to a terminal, and only after a second. Closes the connection. */
enum program_control_answer program_control_ask(struct program_master *master, const char *request);
