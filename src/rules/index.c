/* SPDX-License-Identifier: MIT */
#include "rules/index.h"

static unsigned words_of(unsigned count)
{
    return (count + RULES_INDEX_BITS - 1) / RULES_INDEX_BITS;
}

size_t rules_index_bytes(unsigned count)
{
    return sizeof(uint64_t) * RULES_INDEX_PLACES * RULES_INDEX_CLASSES * words_of(count);
}

void rules_index_add(uint64_t *storage, unsigned count, unsigned number,
                     const struct rules_pattern *pattern)
{
    const unsigned words = words_of(count);
    const uint64_t bit = UINT64_C(1) << number % RULES_INDEX_BITS;
    for (unsigned place = 0; place < RULES_INDEX_PLACES; place++) {
        const size_t first = (size_t)place * RULES_INDEX_CLASSES;
        const bool is_literal = (pattern->mask >> 8 * (1 + place) & 0xff) != 0;
        for (size_t set = first; set < first + RULES_INDEX_CLASSES; set++)
            if (!is_literal || set == rules_index_set(pattern->head, place))
                storage[set * words + number / RULES_INDEX_BITS] |= bit;
    }
}

struct rules_index rules_index_over(const uint64_t *storage, unsigned count)
{
    return (struct rules_index){ .words = storage, .word_count = words_of(count) };
}
