/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

static unsigned shift_of(size_t index, unsigned bits)
{
    size_t row = index >> bits;
    return row > 0 ? (unsigned)row - 1 : 0;
}

uint64_t histogram_low(size_t index, unsigned bits)
{
    unsigned shift = shift_of(index, bits);
    return (uint64_t)(index - ((size_t)shift << bits)) << shift;
}

uint64_t histogram_high(size_t index, unsigned bits)
{
    return histogram_low(index, bits) + ((UINT64_C(1) << shift_of(index, bits)) - 1);
}

uint64_t histogram_middle(size_t index, unsigned bits)
{
    return histogram_low(index, bits) + (UINT64_C(1) << shift_of(index, bits)) / 2;
}

uint64_t histogram_total(const uint64_t *counts, size_t buckets)
{
    uint64_t total = 0;
    for (size_t i = 0; i < buckets; i++)
        total += counts[i];
    return total;
}

static uint64_t rank_of(double part, uint64_t total)
{
    double wanted = part * (double)total;
    uint64_t rank = wanted < (double)total ? (uint64_t)wanted : total;
    if ((double)rank < wanted)
        rank++;
    rank = rank > 0 ? rank : 1;
    return rank < total ? rank : total; /* a total above 2^53 rounds */
}

size_t histogram_quantile(const uint64_t *counts, size_t buckets, uint64_t total, double part)
{
    if (total == 0)
        return buckets;
    uint64_t rank = rank_of(part, total);
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets; i++) {
        seen += counts[i];
        if (seen >= rank)
            return i;
    }
    return buckets;
}

uint64_t histogram_at_most(const uint64_t *counts, size_t buckets, uint64_t value, unsigned bits)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets && histogram_high(i, bits) <= value; i++)
        seen += counts[i];
    return seen;
}
