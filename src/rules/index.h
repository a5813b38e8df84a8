/* SPDX-License-Identifier: MIT
 *
 * Which patterns of a list the first bytes of a path exclude. So a list of rules costs what the
 * rules cost that begin like the path, and not what all of them cost.
 *
 * For each of three places behind the slash, and each class of bytes, a set has the patterns that
 * this byte does not exclude there. A path has one set for each place. Only the patterns that are
 * in all of them can cover the path. The caller tries those.
 *
 * An index owns no memory. It is made once. Then any thread may read it.
 */
#pragma once

#include "rules/pattern.h"

enum {
    RULES_INDEX_PLACES = 3,   /* of a path, behind the slash at its front */
    RULES_INDEX_CLASSES = 64, /* bytes that differ in the upper two bits alone share a class */
    RULES_INDEX_BITS = 64     /* patterns in a word */
};

struct rules_index {
    const uint64_t *words; /* by place, class and number of the word; NULL: nothing is excluded */
    unsigned word_count;   /* of each set */
};

/* Bytes of storage for the index of `count` patterns. */
size_t rules_index_bytes(unsigned count);

/* Adds pattern number `number` to an index of `count` patterns. The storage is zeroed before the
 * first one. */
void rules_index_add(uint64_t *storage, unsigned count, unsigned number,
                     const struct rules_pattern *pattern);

/* The index that is in the storage. Borrows it. */
struct rules_index rules_index_over(const uint64_t *storage, unsigned count);

/* The number of the set for a place of a path with this head. On a machine that stores the most
 * significant byte first, the places are others. */
static inline size_t rules_index_set(uint64_t head, unsigned place)
{
    return place * RULES_INDEX_CLASSES + (head >> 8 * (1 + place)) % RULES_INDEX_CLASSES;
}

/* The patterns of word number `word` that `head` does not exclude (rules_pattern_head of the path),
 * one bit for each. `count` is the number of all patterns. */
static inline uint64_t rules_index_find(const struct rules_index *index, unsigned count,
                                        uint64_t head, unsigned word)
{
    const size_t stride = index->word_count;
    const uint64_t *set = index->words;
    if (!set) {
        const unsigned rest = count - word * RULES_INDEX_BITS;
        return rest < RULES_INDEX_BITS ? (UINT64_C(1) << rest) - 1 : UINT64_MAX;
    }
    set += word;
    return set[rules_index_set(head, 0) * stride] & set[rules_index_set(head, 1) * stride] &
           set[rules_index_set(head, 2) * stride];
}
