/* SPDX-License-Identifier: MIT
 *
 * The encoding is a header of two big-endian words around a zlib stream. The stream has a
 * header of 40 bytes, and then the counters. Each counter is a ZigZag LEB128 number of at
 * most 9 bytes. A number below zero says how many counters in a row are zero. The counters
 * end with the last one that is not zero.
 */
#include "load/hdr.h"

#include "base/base64.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    COOKIE = 0x1c849303 | 0x10,
    COMPRESSED_COOKIE = 0x1c849304 | 0x10,
    HEAD_BYTES = 40,
    OUTER_BYTES = 8,
    NUMBER_BYTES = 9,
    COUNTERS = 33 << LOAD_BITS, /* those of values below 2^43 */
    PLAIN_MAX = HEAD_BYTES + COUNTERS * NUMBER_BYTES
};

/* No run counts more, and doubles are exact up to here. */
static const uint64_t total_max = UINT64_C(1) << 53;

struct form {
    uint32_t digits;
    unsigned bits;
};
static const struct form of_durations = { 3, LOAD_BITS };
static const struct form of_second = { 2, LOAD_SECOND_BITS };

static size_t buckets(const struct form *form)
{
    return histogram_buckets(LOAD_LONGEST_NS, form->bits);
}

/* ---- bytes ---- */

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    uint32_t big = htobe32(value);
    memcpy(at, &big, sizeof(big));
    return at + sizeof(big);
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    uint64_t big = htobe64(value);
    memcpy(at, &big, sizeof(big));
    return at + sizeof(big);
}

static uint32_t take_u32(const uint8_t *at)
{
    uint32_t big;
    memcpy(&big, at, sizeof(big));
    return be32toh(big);
}

static uint64_t take_u64(const uint8_t *at)
{
    uint64_t big;
    memcpy(&big, at, sizeof(big));
    return be64toh(big);
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ ((value & 1) ? UINT64_MAX : 0));
}

static uint8_t *put_number(uint8_t *at, int64_t number)
{
    uint64_t left = zigzag(number);
    unsigned bytes = 1;
    for (; left > 127 && bytes < NUMBER_BYTES; bytes++) {
        *at++ = (uint8_t)(left | 128);
        left >>= 7;
    }
    *at++ = (uint8_t)left; /* the ninth has 8 bits */
    return at;
}

/* Reads the number at `*at`, and moves `*at` behind it. false: it does not end before `end`. */
static bool take_number(const uint8_t **at, const uint8_t *end, int64_t *ret_number)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < NUMBER_BYTES && *at < end; i++) {
        uint8_t byte = *(*at)++;
        bool last = i == NUMBER_BYTES - 1 || byte < 128;
        value |= (uint64_t)(i == NUMBER_BYTES - 1 ? byte : byte & 127) << (7 * i);
        if (last) {
            *ret_number = unzigzag(value);
            return true;
        }
    }
    return false;
}

/* ---- encoding ---- */

static size_t write_plain(const struct form *form, const uint64_t *bucket, uint8_t *plain)
{
    size_t used = buckets(form);
    while (used > 0 && bucket[used - 1] == 0)
        used--;
    uint8_t *at = plain + HEAD_BYTES;
    for (size_t i = 0; i < used;) {
        int64_t zeros = 0;
        for (; bucket[i] == 0; i++)
            zeros++;
        if (zeros > 0)
            at = put_number(at, zeros > 1 ? -zeros : 0);
        at = put_number(at, (int64_t)bucket[i++]);
    }
    size_t len = (size_t)(at - plain);
    at = put_u32(plain, COOKIE);
    at = put_u32(at, (uint32_t)(len - HEAD_BYTES));
    at = put_u32(at, 0); /* offset of a shifted histogram */
    at = put_u32(at, form->digits);
    at = put_u64(at, 1); /* the lowest value that differs from 0 */
    at = put_u64(at, LOAD_LONGEST_NS);
    (void)put_u64(at, UINT64_C(0x3ff0000000000000)); /* ratio to other units: the double 1.0 */
    return len;
}

/* Gives the plain encoding as base64 of its compression. */
static char *compress_plain(const uint8_t *plain, size_t len)
{
    uLongf room = compressBound(len);
    uint8_t *packed = malloc(OUTER_BYTES + room);
    if (!packed)
        return NULL;
    char *text = NULL;
    if (compress2(packed + OUTER_BYTES, &room, plain, len, Z_DEFAULT_COMPRESSION) == Z_OK)
        text = malloc(BASE64_CHARS(OUTER_BYTES + room) + 1);
    if (text) {
        (void)put_u32(put_u32(packed, COMPRESSED_COOKIE), (uint32_t)room);
        base64_encode(packed, OUTER_BYTES + room, text);
        text[BASE64_CHARS(OUTER_BYTES + room)] = '\0';
    }
    free(packed);
    return text;
}

static char *encode(const struct form *form, const uint64_t *bucket)
{
    uint8_t *plain = malloc(PLAIN_MAX);
    if (!plain)
        return NULL;
    char *text = compress_plain(plain, write_plain(form, bucket, plain));
    free(plain);
    return text;
}

char *load_hdr_encode(const struct load_durations *durations)
{
    return encode(&of_durations, durations->bucket);
}

char *load_hdr_encode_second(const uint64_t *bucket)
{
    return encode(&of_second, bucket);
}

/* ---- decoding ---- */

/* Adds each counter to `to`; only checks when `to` is NULL. */
static bool read_counters(const struct form *form, const uint8_t *at, const uint8_t *end,
                          uint64_t *to)
{
    const size_t most = buckets(form);
    uint64_t total = 0;
    size_t index = 0;
    while (at < end) {
        int64_t number;
        if (!take_number(&at, end, &number))
            return false;
        uint64_t zeros = number < 0 ? -(uint64_t)number : number == 0 ? 1 : 0;
        if (zeros > most - index || (number > 0 && index == most) ||
            number > (int64_t)(total_max - total))
            return false;
        if (number > 0 && to)
            to[index] += (uint64_t)number;
        total += number > 0 ? (uint64_t)number : 0;
        index += number > 0 ? 1 : zeros;
    }
    return true;
}

/* Whether the head is of this form, and its counters end with the text. */
static bool head_fits(const struct form *form, const uint8_t *plain, size_t len)
{
    return len >= HEAD_BYTES && take_u32(plain) == COOKIE &&
           take_u32(plain + 4) == len - HEAD_BYTES && take_u32(plain + 8) == 0 &&
           take_u32(plain + 12) == form->digits && take_u64(plain + 16) == 1 &&
           take_u64(plain + 24) == LOAD_LONGEST_NS;
}

static int read_plain(const struct form *form, const uint8_t *plain, size_t len, uint64_t *bucket)
{
    if (!head_fits(form, plain, len) || !read_counters(form, plain + HEAD_BYTES, plain + len, NULL))
        return -EINVAL;
    (void)read_counters(form, plain + HEAD_BYTES, plain + len, bucket);
    return 0;
}

static int unpack(const struct form *form, const uint8_t *packed, size_t len, uint8_t *plain,
                  uint64_t *bucket)
{
    if (len < OUTER_BYTES || take_u32(packed) != COMPRESSED_COOKIE ||
        take_u32(packed + 4) != len - OUTER_BYTES)
        return -EINVAL;
    uLongf plain_len = PLAIN_MAX;
    uLong packed_len = (uLong)(len - OUTER_BYTES);
    int result = uncompress2(plain, &plain_len, packed + OUTER_BYTES, &packed_len);
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    if (result != Z_OK || packed_len != len - OUTER_BYTES)
        return -EINVAL;
    return read_plain(form, plain, plain_len, bucket);
}

static int decode(const struct form *form, struct span text, uint64_t *bucket)
{
    if (text.len % 4 != 0 || text.len > BASE64_CHARS(PLAIN_MAX + OUTER_BYTES))
        return -EINVAL;
    size_t len;
    uint8_t *packed = malloc(BASE64_BYTES(text.len) + 1);
    uint8_t *plain = malloc(PLAIN_MAX);
    int result = -ENOMEM;
    if (packed && plain)
        result = base64_decode(text, packed, BASE64_BYTES(text.len), &len)
                     ? unpack(form, packed, len, plain, bucket)
                     : -EINVAL;
    free(packed);
    free(plain);
    return result;
}

/* Derives the count, sums, least and most from the buckets. */
static void derive_sums(struct load_durations *read)
{
    const size_t most = buckets(&of_durations);
    for (size_t i = 0; i < most; i++) {
        if (read->bucket[i] == 0)
            continue;
        double middle = (double)histogram_middle(i, LOAD_BITS), count = (double)read->bucket[i];
        if (read->count == 0)
            read->least_ns = histogram_low(i, LOAD_BITS);
        read->most_ns = histogram_high(i, LOAD_BITS);
        read->count += read->bucket[i];
        read->sum_ns += middle * count;
        read->sum_squares += middle * middle * count;
    }
}

int load_hdr_decode(struct span text, struct load_durations *durations)
{
    struct load_durations read;
    if (load_durations_init(&read) != 0)
        return -ENOMEM;
    int result = decode(&of_durations, text, read.bucket);
    if (result == 0) {
        derive_sums(&read);
        load_durations_merge(durations, &read);
    }
    load_durations_done(&read);
    return result;
}

int load_hdr_decode_second(struct span text, uint64_t *bucket)
{
    return decode(&of_second, text, bucket);
}
