/* SPDX-License-Identifier: MIT
 *
 * Reading a configuration: file, environment and command line, checked and put
 * together. It opens no socket and writes nothing; what it asks of the disk is
 * whether the folders and files that are named are there.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"

#include <stdio.h>

/* One --name value of the command line; the name is one of settings.def. */
struct config_flag {
    const char *name; /* without the dashes */
    const char *value;
};

/* What to read; everything is borrowed until config_read returns, `file`,
 * `folder` and the flags for as long as the store is used. */
struct config_request {
    const char *file;   /* or NULL */
    const char *folder; /* DIR on the command line: the site "default", for any host; or NULL */
    const struct config_flag *flags;
    size_t flag_count;
    const char *const *environment; /* "NAME=value", NULL at the end; NULL: none */
    bool output_is_terminal;        /* then `weir DIR` logs requests there unless told otherwise */
};

struct config_store;

/* Reads. Always gives a store; whether it may be used says config_read_errors. */
struct config_store *config_read(const struct config_request *request);

/* The configuration, valid until config_read_free; only when there are no errors. */
const struct config *config_read_result(const struct config_store *store);

/* Everything that is wrong, and how many of these are errors; of them, those of
 * the command line. */
unsigned config_read_errors(const struct config_store *store);
unsigned config_read_flag_errors(const struct config_store *store);
unsigned config_read_warnings(const struct config_store *store);
void config_read_print_problems(const struct config_store *store, FILE *out);

/* Prints every value in force and where it came from; only when there are no errors. */
void config_read_explain(const struct config_store *store, FILE *out);

/* Accepts NULL. */
void config_read_free(struct config_store *store);
