/* SPDX-License-Identifier: MIT */
#pragma once

#include "program/options.h"

/* How a running server was started. */
struct program_start {
    const char **arguments;
    const char **environment;
    struct program_options options; /* of `weir serve`; they borrow from `arguments` */
};

/* Reads it into zeroes, and goes to the folder that the server is in. PROGRAM_OK, or the exit
 * status after having said why not. Ends with program_start_done, which takes zeroes too. */
int program_start_read(int pid, struct program_start *ret_start);
void program_start_done(struct program_start *start);
