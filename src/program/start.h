/* SPDX-License-Identifier: MIT
 *
 * The command line, environment and folder of a running server, as the kernel keeps them.
 */
#pragma once

#include "program/serve.h"

struct program_start {
    const char **arguments;
    const char **environment;
    struct program_serve_options options; /* they borrow from `arguments` */
};

/* Reads the start of process `pid` into `ret_start`, which is all zeroes, and changes to the folder
 * of that process. Returns PROGRAM_OK, or the exit status after printing a message. End with
 * program_start_done in every case; it accepts zeroes. */
int program_start_read(int pid, struct program_start *ret_start);
void program_start_done(struct program_start *start);
