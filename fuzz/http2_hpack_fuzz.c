/* SPDX-License-Identifier: MIT
 *
 * Header blocks of one connection, beside libnghttp2: the same fields, the same table and the same
 * faults, and requests as the plainest form of the rules has them.
 *
 * Input: for each block a byte of flags, two bytes of length, and the block. A flag sets the limit
 * of the table first, from one more byte.
 */
#include "support/inflater.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT_FLAG = 1, LIMIT_UNIT = 16, BLOCK_MAX = 16 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inflater_pair *pair = inflater_pair_new();
    struct span rest = span_of((const char *)data, size);
    bool right = true;

    while (right && rest.len >= 4) {
        const unsigned char *at = (const unsigned char *)rest.at;
        if (at[0] & LIMIT_FLAG)
            inflater_pair_limit(pair, at[1] * LIMIT_UNIT);
        size_t len = (size_t)(at[2] << 8 | at[3]) % BLOCK_MAX;
        rest = span_skip(rest, 4);
        struct span block = span_first(rest, len);
        rest = span_skip(rest, block.len);
        char *copy = malloc(block.len + 1); /* a sanitizer finds a read past it */
        CHECK(copy);
        memcpy(copy + 1, block.at, block.len);
        right = inflater_pair_read(pair, span_of(copy + 1, block.len));
        free(copy);
    }
    inflater_pair_free(pair);
    return 0;
}
