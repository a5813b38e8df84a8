/* SPDX-License-Identifier: MIT */
#include "config/arena.h"

#include "base/check.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 8 * 1024 };

struct config_arena_block {
    struct config_arena_block *older;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

void *config_arena_take(struct config_arena *arena, size_t size_bytes)
{
    size_t align = alignof(max_align_t);
    size_t size = (size_bytes + align - 1) / align * align;
    struct config_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = calloc(1, sizeof(*block) + room);
        CHECK(block != NULL);
        block->size = room;
        block->older = arena->blocks;
        arena->blocks = block;
    }
    void *piece = block->bytes + block->used;
    block->used += size;
    return piece;
}

char *config_arena_copy(struct config_arena *arena, struct span text)
{
    char *copy = config_arena_take(arena, text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    return copy;
}

char *config_arena_print(struct config_arena *arena, const char *format, ...)
{
    va_list args;
    char *printed;
    va_start(args, format);
    int len = vasprintf(&printed, format, args);
    va_end(args);
    CHECK(len >= 0);
    char *text = config_arena_copy(arena, span_of(printed, (size_t)len));
    free(printed);
    return text;
}

void config_arena_done(struct config_arena *arena)
{
    while (arena->blocks) {
        struct config_arena_block *block = arena->blocks;
        arena->blocks = block->older;
        free(block);
    }
}
