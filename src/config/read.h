/* SPDX-License-Identifier: MIT
 *
 * Reads a configuration: file, environment and command line, checked and put together. It opens no
 * socket and writes nothing. It checks on the disk whether the named folders and files are there.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"
#include "config/problem.h"
#include "config/setting.h"

#include <stdio.h>

/* One --name value of the command line; the name is one of settings.def. */
struct config_flag {
    const char *name; /* without the dashes */
    const char *value;
};

/* The sources. All are borrowed until config_read returns; `file`, `folder` and the flags for as
 * long as the store is used. */
struct config_request {
    const char *file;   /* or NULL */
    const char *folder; /* DIR on the command line: the site "default", for any host; or NULL */
    const struct config_flag *flags;
    size_t flag_count;
    const char *const *environment; /* "NAME=value", NULL at the end; NULL: none */
    bool again;                     /* after a reload or an upgrade: see config/file.h */
    bool output_is_terminal;        /* then `weir DIR` logs requests there by default */
    /* Sets `cache_size_bytes` of a configuration, and what else `auto` means for it. The other
     * settings are there. NULL: `auto` is CONFIG_CACHE_BYTES. */
    void (*size_cache)(struct config *config);
};

struct config_store;

/* Reads the sources. Always gives a store; check config_read_errors before use. */
struct config_store *config_read(const struct config_request *request);

/* The configuration, valid until config_read_free; only when there are no errors. */
const struct config *config_read_result(const struct config_store *store);

/* The number of errors, of errors on the command line, and of warnings; and as text at most `most`
 * errors and as many warnings. */
unsigned config_read_errors(const struct config_store *store);
unsigned config_read_flag_errors(const struct config_store *store);
unsigned config_read_warnings(const struct config_store *store);
void config_read_print_problems(const struct config_store *store, unsigned most, FILE *out);

/* Prints every value in force and its source; only when there are no errors. */
void config_read_explain(const struct config_store *store, FILE *out);

/* Where value number `index` of a setting of site number `site` was given: "weir.conf:12". There is
 * such a value. For a setting of paths, `index` is the number of the path in the site. */
void config_read_site_origin(const struct config_store *store, unsigned site,
                             enum config_setting_place place, unsigned index,
                             char out[CONFIG_ORIGIN_MAX]);

/* The first value of a [server] setting as text, or NULL; also when there are errors. */
const char *config_read_text(const struct config_store *store, enum config_setting_place place);

/* The start of a message about value number `index` of a [server] setting
 * (config_problem_format_label); "" where there is no such value. */
void config_read_label(const struct config_store *store, enum config_setting_place place,
                       size_t index, char out[CONFIG_ORIGIN_MAX]);

/* Adds an error about a [server] setting that has a value. It is for checks that need the system
 * calls of other layers, between config_read and config_read_errors. */
void config_read_add_error(struct config_store *store, enum config_setting_place place,
                           const char *text);

/* Another owner of the same store, which is freed with its last owner. One thread. */
struct config_store *config_read_share(struct config_store *store);

/* Accepts NULL. */
void config_read_free(struct config_store *store);
