/* SPDX-License-Identifier: MIT
 *
 * Finds a running server, and sends it requests over its control socket
 * (server/control.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The sentence about --control in --help. */
#define PROGRAM_CONTROL_SENTENCE "the control socket of the server"

struct program_master {
    pid_t pid;
    int fd; /* connected to the control socket */
};

/* Finds and connects to the server with the socket `path` or the process id `pid`, or to the only
 * one that this user runs; each may be NULL. Returns PROGRAM_OK, or the exit status after printing
 * a message for `weir command`. */
int program_control_find(const char *command, const char *path, const char *pid,
                         struct program_master *ret_master);

enum program_control_answer {
    PROGRAM_CONTROL_OK,
    PROGRAM_CONTROL_FAILED,
    PROGRAM_CONTROL_CUT /* the connection ended before the last line */
};

/* Writes the first address without TLS that the server listens on, as a URL; empty when there is
 * none. Closes the connection. */
enum program_control_answer program_control_url(struct program_master *master, char *out,
                                                size_t size);

/* Sends `request`, and waits for the result. Lines of the answer go to standard error. Progress
 * lines go there only when it is a terminal and a second has passed. Closes the connection. */
enum program_control_answer program_control_ask(struct program_master *master, const char *request);
