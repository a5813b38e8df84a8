/* SPDX-License-Identifier: MIT
 *
 * Log-linear histograms: how a value becomes the index of a bucket, and back. Each power of two
 * is divided into 2^bits buckets of equal width. The middle of a bucket is within half a width of
 * each of its values: 0.8 % with 6 bits, 0.4 % with 7 bits. Values below 2^(bits+1) have a bucket
 * each.
 *
 * There is no unit and no storage here. The caller has an array, or parts of one, and defines the
 * unit of the values.
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

/* The number of buckets for values up to `most`. */
static inline size_t histogram_buckets(uint64_t most, unsigned bits)
{
    return histogram_index(most, bits) + 1;
}

/* The least and the greatest value of a bucket, and the value that represents it. `index` is at
 * most histogram_index(UINT64_MAX, bits). */
uint64_t histogram_low(size_t index, unsigned bits);
uint64_t histogram_high(size_t index, unsigned bits);
uint64_t histogram_middle(size_t index, unsigned bits);

/* How many values are counted in `buckets` buckets. */
uint64_t histogram_total(const uint64_t *counts, size_t buckets);

/* The bucket of a quantile: it holds the value number ceil(part * total), at least number 1. `part`
 * is 0 to 1, and `total` is that of the counts. Without counts the result is `buckets`. */
size_t histogram_quantile(const uint64_t *counts, size_t buckets, uint64_t total, double part);

/* How many values are certainly at most `value`: those in buckets that end there or before. */
uint64_t histogram_at_most(const uint64_t *counts, size_t buckets, uint64_t value, unsigned bits);
