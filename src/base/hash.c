/* SPDX-License-Identifier: MIT
 *
 * Eight bytes at a time go through a 64x64 -> 128 bit multiplication, folded by exclusive or. Only
 * one factor holds input, and the other one holds a state that depends on the seed. Bytes chosen
 * without the seed therefore cannot steer the product to zero. Words are read in the machine's byte
 * order, so hashes are for this machine only.
 */
#include "base/hash.h"

/* Odd, with about as many ones as zeros: fractional digits of sqrt(2), sqrt(3) and sqrt(5). */
#define HASH_STEP  0x6a09e667f3bcc909u
#define HASH_START 0xbb67ae8584caa73bu
#define HASH_END   0x3c6ef372fe94f82bu

static inline uint64_t fold_product(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load_8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* All of 0 to 7 bytes in one word; the length is mixed in by the caller. */
static inline uint64_t load_short(const char *at, size_t len)
{
    if (len >= 4) {
        uint32_t first, last;
        memcpy(&first, at, sizeof(first));
        memcpy(&last, at + len - sizeof(last), sizeof(last));
        return (uint64_t)first << 32 | last;
    }
    if (len == 0)
        return 0;
    return (uint64_t)(unsigned char)at[0] << 16 | (uint64_t)(unsigned char)at[len / 2] << 8 |
           (unsigned char)at[len - 1];
}

uint64_t hash_bytes(struct span bytes, uint64_t seed)
{
    uint64_t state = fold_product(seed ^ HASH_START, HASH_STEP) ^ seed;
    const char *at = bytes.at;
    size_t left = bytes.len;

    while (left > 8) {
        /* The added word keeps two states that fold alike from staying alike. */
        uint64_t word = load_8(at);
        state = fold_product(state ^ word, HASH_STEP) + word;
        at += 8;
        left -= 8;
    }
    uint64_t tail = left == 8 ? load_8(at) : load_short(at, left);
    state = fold_product(state ^ tail, HASH_STEP) + tail;
    state ^= (uint64_t)bytes.len * HASH_END;
    return fold_product(state ^ HASH_END, HASH_START) ^ state >> 29;
}
