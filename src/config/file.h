/* SPDX-License-Identifier: MIT
 *
 * The form of weir.conf: an INI file. The reader passes each section and each
 * setting to a handler, with its line number. What a setting means is not known here.
 *
 *   # a comment (or ;) on a line of its own
 *   [section]
 *   name = value         (or name : value)
 *
 * White space at the ends of a line, and around a name and a value, is ignored.
 * Indentation is therefore free, and a line never continues the one before.
 */
#pragma once

#include "base/check.h"
#include "config/arena.h"
#include "config/problem.h"

struct config_file_handler {
    void *context;
    /* The text between the brackets, trimmed; lent for the call. */
    void (*section)(void *context, struct span text, unsigned line);
    /* Both trimmed; the value may be empty. Lent for the call. */
    void (*setting)(void *context, struct span name, struct span value, unsigned line);
};

/* Reads the whole file into the arena: NULL, or the reason why it cannot be read. `again`: a FIFO
 * was read before, and would keep the reader waiting for another writer. So only a regular file is
 * read. */
MUST_USE const char *config_file_load(const char *path, bool again, struct config_arena *arena,
                                      struct span *ret_text);

/* Calls the handler for each section and setting of `text`. A line that is neither adds an error
 * to `problems`, with `path` as the name of the file. */
void config_file_parse(struct span text, const char *path,
                       const struct config_file_handler *handler, struct config_problems *problems);
