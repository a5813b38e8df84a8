/* SPDX-License-Identifier: MIT
 *
 * weir.conf as lines: an INI file, read by inih, told section by section and
 * setting by setting with the number of the line. It knows the form of the file
 * and none of its meaning.
 *
 *   # a comment (or ;) on a line of its own
 *   [section]
 *   name = value
 *
 * Spaces at the ends of lines and around names and values do not count, and no
 * line continues another: indentation is free.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"

struct config_file_handler {
    void *context;
    /* What stands between the brackets, trimmed; lent for the call. */
    void (*section)(void *context, struct span text, unsigned line);
    /* Both trimmed; the value may be empty. Lent for the call. */
    void (*setting)(void *context, struct span name, struct span value, unsigned line);
};

/* Reads the whole file into the arena. 0, or -errno (-EFBIG above a megabyte,
 * -EISDIR for a folder). */
MUST_USE int config_file_load(const char *path, struct config_arena *arena, struct span *ret_text);

/* Goes through the text. Lines that are no INI are told to `problems`, as of `path`. */
void config_file_parse(struct span text, const char *path,
                       const struct config_file_handler *handler, struct config_problems *problems);
