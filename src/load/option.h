/* SPDX-License-Identifier: MIT
 *
 * The options of a load: what each is called, what it takes, and what it means for
 * the plan.
 */
#pragma once

#include "load/target.h"

enum { LOAD_FIELDS_MAX = 64 };

/* An option. What it takes is read by `take`, which has the context of its set. */
struct load_option {
    const char *name;
    char letter;             /* 0: none */
    const char *placeholder; /* NULL: it has no value, and `take` gets "" */
    const char *sentence;
    bool (*take)(void *context, const char *value, struct load_refusal *refusal);
};

/* What is put together while the words are read: the context of the options here. */
struct load_reading {
    struct load_plan *plan;
    struct load_manner manner;
    const char *fields[LOAD_FIELDS_MAX + 1];
    size_t field_count;
    uint64_t users; /* 0: not said */
    char *data;     /* of a file */
    bool has_steps, has_duration, has_warmup;
};

/* NULL name at the end. */
extern const struct load_option load_option_table[];
