/* SPDX-License-Identifier: MIT
 *
 * From the options and URLs of a command line to the plan of a load. Every mistake is reported in
 * one line.
 */
#pragma once

#include "load/target.h"
#include "option/option.h"

enum { LOAD_FIELDS_MAX = 64 };

/* The state in which the values of the options come together. */
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

/* Sets the defaults. false: out of memory. */
MUST_USE bool load_option_begin(struct load_reading *reading);

/* Adds a URL of the command line, in order with the options. */
MUST_USE bool load_option_url(struct load_reading *reading, const char *url,
                              struct option_refusal *refusal);

/* Checks that the options agree, and makes the plan in `reading` complete. The plan borrows the
 * words of the command line. */
MUST_USE bool load_option_finish(struct load_reading *reading, struct option_refusal *refusal);

/* Frees the plan and the rest. */
void load_option_done(struct load_reading *reading);
