/* SPDX-License-Identifier: MIT
 *
 * Input for parsers that ends at an unreadable page, and begins behind one when
 * it fills its pages. A parser that reads one byte too far crashes at once, with
 * or without a sanitizer.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <sys/mman.h>
#include <unistd.h>

/* One guarded copy; guard_done frees its memory. */
struct guard {
    char *map;
    size_t map_size;
};

/* `len` writable bytes that end where the unreadable page begins. */
static inline char *guard_room(struct guard *guard, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (len + page - 1) / page * page;

    guard->map_size = inner + 2 * page;
    guard->map = mmap(NULL, guard->map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guard->map != MAP_FAILED);
    CHECK(inner == 0 || mprotect(guard->map + page, inner, PROT_READ | PROT_WRITE) == 0);
    return guard->map + page + inner - len;
}

static inline struct span guard_copy(struct guard *guard, struct span bytes)
{
    char *at = guard_room(guard, bytes.len);

    if (bytes.len > 0)
        memcpy(at, bytes.at, bytes.len);
    return span_of(at, bytes.len);
}

/* The same for a text, without its NUL. */
static inline struct span guard_text(struct guard *guard, const char *text)
{
    return guard_copy(guard, span_text(text));
}

static inline void guard_done(struct guard *guard)
{
    CHECK(munmap(guard->map, guard->map_size) == 0);
    guard->map = NULL;
}
