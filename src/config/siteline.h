/* SPDX-License-Identifier: MIT
 *
 * The lines of `_headers` and `_redirects`, and the warnings about them. The meaning of a line is
 * in config/sitefile.c and config/siteredirect.c.
 *
 * Private to config/.
 */
#pragma once

#include "config/sitefile.h"

enum { CONFIG_SITELINE_WORDS = 16 };

struct config_siteline_reader {
    const char *path; /* for messages */
    struct span rest;
    unsigned line; /* that was taken last */
    struct config_arena *arena;
    struct config_problems *problems;
};

struct config_siteline_reader config_siteline_begin(const struct config_sitefile *file,
                                                    struct config_arena *arena,
                                                    struct config_problems *problems);

/* Takes the next line that is neither empty nor a comment, without white space at its ends. */
bool config_siteline_take(struct config_siteline_reader *r, struct span *ret_line);

/* Splits a line at white space, up to a comment. Returns the number of words. If it is
 * CONFIG_SITELINE_WORDS, there may be more. */
unsigned config_siteline_split(struct span line, struct span words[CONFIG_SITELINE_WORDS]);

/* Adds a warning about the line that was taken last, or about another one. */
void config_siteline_refuse(const struct config_siteline_reader *r, const char *why);
void config_siteline_refuse_at(const struct config_siteline_reader *r, unsigned line,
                               const char *why);

/* Whether a word is a URL with a host. */
bool config_siteline_names_host(struct span word);

/* `PATH:LINE`, and a copy of a text, in the arena. */
const char *config_siteline_origin(const struct config_siteline_reader *r, unsigned line);
struct span config_siteline_keep(const struct config_siteline_reader *r, struct span text);
