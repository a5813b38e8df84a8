/* SPDX-License-Identifier: MIT
 *
 * Memory that is allocated piece by piece and freed all at once: the strings and lists of one
 * configuration. It never shrinks. It never returns NULL: a process that lacks these few kilobytes
 * ends.
 */
#pragma once

#include "base/span.h"

struct config_arena {
    struct config_arena_block *blocks; /* newest first; NULL: empty */
};

/* Zeroed, aligned for anything; valid until config_arena_done. */
void *config_arena_take(struct config_arena *arena, size_t size_bytes);

/* A copy of `text` with a NUL at its end. */
char *config_arena_copy(struct config_arena *arena, struct span text);

/* A printed string. */
char *config_arena_print(struct config_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Frees everything; the arena is empty again. */
void config_arena_done(struct config_arena *arena);
