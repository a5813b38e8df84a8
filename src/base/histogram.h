/* SPDX-License-Identifier: MIT
 *
 * Log-linear histograms: how a value becomes the index of a bucket, and back.
 * Each power of two is divided into 2^bits buckets of equal width, so that a bucket
 * is at most 2^-bits of its values wide, and its middle is within half of that of
 * each of them: with 6 bits 0.8 %, with 7 bits 0.4 %. Values below 2^(bits+1) have
 * a bucket each.
 *
 * It knows no unit, and no storage: who counts has an array, or parts of one, and
 * says in which unit its values are.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bits of a histogram: 1 to HISTOGRAM_BITS_MAX. */
enum { HISTOGRAM_BITS_MAX = 16 };

/* The bucket of a value. */
static inline size_t histogram_index(uint64_t value, unsigned bits)
{
    unsigned top = 63 - (unsigned)__builtin_clzll(value | UINT64_C(1) << bits);
    unsigned shift = top - bits;
    return ((size_t)shift << bits) + (size_t)(value >> shift);
}

/* How many buckets values up to `most` have. */
static inline size_t histogram_buckets(uint64_t most, unsigned bits)
{
    return histogram_index(most, bits) + 1;
}

/* The least and the greatest value of a bucket, and the one that stands for it. `index` is at
 * most histogram_index(UINT64_MAX, bits). */
uint64_t histogram_low(size_t index, unsigned bits);
uint64_t histogram_high(size_t index, unsigned bits);
uint64_t histogram_middle(size_t index, unsigned bits);

/* How many values are counted in `buckets` buckets. */
uint64_t histogram_total(const uint64_t *counts, size_t buckets);

/* The bucket that holds the value below or at which `part` (0 to 1) of all values are: the one of
 * the value number ceil(part * total), at least number 1. `total` is that of the counts; 0: it is
 * `buckets`, that is none. */
size_t histogram_quantile(const uint64_t *counts, size_t buckets, uint64_t total, double part);

/* How many values are known to be at most `value`: those of buckets that end there or before. */
uint64_t histogram_at_most(const uint64_t *counts, size_t buckets, uint64_t value, unsigned bits);
