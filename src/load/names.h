/* SPDX-License-Identifier: MIT
 *
 * What things are called, where they are written and where they are read.
 */
#pragma once

#include "load/result.h"

/* Of the JSON form; higher when a name goes or changes its meaning. */
enum { LOAD_SCHEMA = 1 };

enum { LOAD_LOOPS = 3, LOAD_THINKS = 3, LOAD_VERIFIES = 3 };

extern const char *const load_loop_names[LOAD_LOOPS];
extern const char *const load_think_names[LOAD_THINKS];
extern const char *const load_verify_names[LOAD_VERIFIES];

struct load_error_about {
    const char *name, *phase, *sentence;
};
extern const struct load_error_about load_errors[LOAD_ERROR_COUNT];
