/* SPDX-License-Identifier: MIT
 *
 * Header blocks of one connection, beside libnghttp2: the same fields, the same table and the same
 * faults, and requests as the plainest form of the rules has them.
 *
 * Input: for each block two bytes of length, and the block.
 */
#include "support/inflater.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCK_MAX = 16 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct inflater_pair *pair; /* kept, because making it took most of the time */
    if (!pair)
        pair = inflater_pair_new();
    struct span rest = span_of((const char *)data, size);
    bool right = true;

    while (right && rest.len >= 2) {
        const unsigned char *at = (const unsigned char *)rest.at;
        size_t len = (size_t)(at[0] << 8 | at[1]) % BLOCK_MAX;
        rest = span_skip(rest, 2);
        struct span block = span_first(rest, len);
        rest = span_skip(rest, block.len);
        char *copy = malloc(block.len + 1); /* a sanitizer finds a read past it */
        CHECK(copy);
        memcpy(copy + 1, block.at, block.len);
        right = inflater_pair_read(pair, span_of(copy + 1, block.len));
        free(copy);
    }
    inflater_pair_restart(pair);
    return 0;
}
