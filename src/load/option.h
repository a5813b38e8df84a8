/* SPDX-License-Identifier: MIT
 *
 * The options of a load, and the state in which their values come together. load/parse.h makes the
 * plan from that state.
 */
#pragma once

#include "load/target.h"
#include "option/option.h"

enum { LOAD_FIELDS_MAX = 64 };

struct load_reading {
    struct load_plan plan; /* as far as it is known */
    struct load_manner manner;
    const char *fields[LOAD_FIELDS_MAX + 1];
    size_t field_count;
    uint64_t users; /* 0: not given */
    char *data;     /* the content of --data-file; NULL: none */
    bool has_steps, no_keepalive;
};

/* The rows read into a struct load_reading. NULL name at the end. */
extern const struct option load_option_table[];
