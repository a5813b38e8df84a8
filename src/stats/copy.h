/* SPDX-License-Identifier: MIT
 *
 * Copies of a segment, and whether they can be believed. A copy is made with pread(2), not by
 * mapping. A file that was truncated then gives fewer bytes instead of a fault, and nothing changes
 * after it was checked.
 *
 * A worker that was taken over can store anything in its arena, and make its file any length. So a
 * copy is never longer than the memory that the file has. In a sound arena nothing overlaps, so the
 * work to read it is bounded by its length.
 */
#pragma once

#include "base/span.h"
#include "stats/segment.h"

enum { STATS_WHY_MAX = 160 };

/* The bytes are aligned to CACHE_LINE. */
struct stats_copy {
    struct span head;
    unsigned arena_count;
    struct span *arena; /* arena_count of them; empty: nothing is in use, or it cannot be read */
};

/* Copies the segment `name` ("/weir-..."). On failure false, and `why` is the rest of a sentence
 * that begins with the name of the segment. Call stats_copy_done in any case. */
MUST_USE bool stats_copy_take(const char *name, struct stats_copy *ret_copy,
                              char why[STATS_WHY_MAX]);

/* The same for a segment that this process has, named or not. */
MUST_USE bool stats_copy_here(const struct stats_segment *segment, struct stats_copy *ret_copy,
                              char why[STATS_WHY_MAX]);
void stats_copy_done(struct stats_copy *copy);

/* Copies one arena. The caller frees the bytes. Empty: it has none, or cannot be read. */
struct span stats_copy_arena(int fd);

/* Copies a text of a segment, which has `size` bytes with its zero. The segment is not trusted, and
 * no terminal may obey it: a byte that is not printable ASCII becomes `?`. `to` may be `from`. */
void stats_copy_text(char *to, const char *from, size_t size);

/* Whether the head is of this version. If not, `why` is the rest of a sentence. */
MUST_USE bool stats_copy_is_head(struct span head, char why[STATS_WHY_MAX]);

/* What is in a copied arena. */
struct stats_survey {
    size_t blocks;
    unsigned rows;  /* sites: one more than the last that a block has */
    bool damaged;   /* something lies outside or overlaps, or the header is cut */
    uint64_t newer; /* the end of the last place that was taken after the copy began; 0: none */
};
struct stats_survey stats_copy_survey(struct span arena);

static inline const struct stats_arena_header *stats_copy_header(struct span arena)
{
    return (const struct stats_arena_header *)(const void *)arena.at;
}

/* The bytes at a place of an arena that is not damaged. NULL: none, or newer than the copy. */
static inline const void *stats_copy_at(struct span arena, const _Atomic uint32_t *place,
                                        size_t size)
{
    uint64_t offset = atomic_load_explicit(place, memory_order_relaxed);
    return offset != 0 && offset + size <= arena.len ? arena.at + offset : NULL;
}
