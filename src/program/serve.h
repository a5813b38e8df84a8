/* SPDX-License-Identifier: MIT
 *
 * The options of `weir serve`. `weir trace` reads the command line of a running server with them.
 */
#pragma once

#include "program/configuration.h"

struct program_serve_options {
    struct program_configuration configuration;
    int ready_fd; /* -1: none */
    bool quiet;
    struct option_list folder; /* at most one */
};

/* Letters of other servers, for each command that takes the settings. NULL word at the end. */
extern const struct option_elsewhere program_serve_elsewhere[];
