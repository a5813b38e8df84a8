/* SPDX-License-Identifier: MIT */
#pragma once

#include "program/options.h"

/* Reads how a running server was started: gives options of `weir serve`, and goes to its folder.
 * PROGRAM_OK, or the exit status after having said why not. What the options borrow is kept until
 * the program ends. */
int program_start_read(int pid, struct program_options *ret_options,
                       const char *const **ret_environment);
