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
    uint64_t users;         /* 0: not given */
    char *data;             /* the content of --data-file; NULL: none */
    const char *cacert;     /* NULL: the authorities of the system */
    enum load_sessions tls; /* LOAD_TLS_NONE: not given */
    bool has_steps, no_keepalive;
};

/* Sets the defaults. false: out of memory. */
MUST_USE bool load_reading_begin(struct load_reading *reading);

/* Adds a URL of the command line, in order with the options. */
MUST_USE bool load_reading_url(struct load_reading *reading, const char *url,
                               struct option_refusal *refusal);

/* Checks that the options agree, and makes the plan in `reading` complete. The plan borrows the
 * words of the command line. With TLS it reads the certificates of the authorities. */
MUST_USE bool load_reading_finish(struct load_reading *reading, struct option_refusal *refusal);

/* Frees the plan and the rest. */
void load_reading_done(struct load_reading *reading);
