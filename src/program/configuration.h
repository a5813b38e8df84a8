/* SPDX-License-Identifier: MIT
 *
 * The options that choose a configuration: -c, and a flag for each setting of
 * config/settings.def. The commands `serve`, `check` and `trace` take them.
 *
 * The values are collected unread: config/read.h checks them.
 */
#pragma once

#include "config/read.h"
#include "config/setting.h"
#include "option/option.h"

struct program_configuration {
    const char *file; /* of -c; NULL: none */
    struct config_flag *flags;
    size_t flag_count;
};

/* -c. */
extern const struct option program_configuration_file[];

/* The flags of the settings. Empty before program_configuration_init. */
extern struct option program_configuration_flags[CONFIG_SETTINGS + 1];
void program_configuration_init(void);

/* Explains an option that no command has, and that names a setting in another way. */
bool program_configuration_explain(struct span name, struct option_refusal *refusal);

/* The group of the flags, for a command whose struct has a program_configuration at `place`. */
#define PROGRAM_CONFIGURATION_FLAGS(place) \
    { \
        .options = program_configuration_flags, .offset = (place), \
        .print = program_configuration_print, .done = program_configuration_done \
    }
void program_configuration_print(FILE *out);
void program_configuration_done(void *configuration);

/* The configuration that is used where the command line names none: "weir.conf", or NULL if this
 * folder has no such file. */
const char *program_configuration_default(void);

/* Reads a configuration for a start of the server by this process. It finds everything that
 * config_read does, and a `user` that this process cannot become. */
struct config_store *program_configuration_read(const struct config_request *request);

/* Makes the request for config_read: `file` or `folder` or both, the flags, and the environment of
 * this process. */
struct config_request program_configuration_request(
    const struct program_configuration *configuration, const char *file, const char *folder);
