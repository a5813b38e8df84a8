/* SPDX-License-Identifier: MIT
 *
 * Histograms from any source: refused, or read, written and read back as the same. The input is
 * the encoding with or without base64 and compression, because these would keep a fuzzer from
 * the content.
 */
#include "base/base64.h"
#include "base/check.h"
#include "load/hdr.h"

#include <stdlib.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME = 40, COUNTERS_MAX = 65000, STORED_MORE = 11 };

static size_t bucket_bytes(void)
{
    return histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t);
}

/* The buckets stay in memory from input to input: making them took most of the time. */
static void clear_durations(struct load_durations *durations)
{
    memset(durations->bucket, 0, bucket_bytes());
    *durations = (struct load_durations){ .bucket = durations->bucket };
}

static void try_text(struct span text)
{
    static struct load_durations read, again;
    if (!read.bucket)
        CHECK(load_durations_init(&read) == 0 && load_durations_init(&again) == 0);
    if (load_hdr_decode(text, &read) == 0) {
        CHECK(read.count == histogram_total(read.bucket, bucket_bytes() / sizeof(uint64_t)));
        char *written = load_hdr_encode(&read);
        CHECK(written && load_hdr_decode(span_text(written), &again) == 0);
        CHECK(memcmp(read.bucket, again.bucket, bucket_bytes()) == 0);
        free(written);
        clear_durations(&read);
        clear_durations(&again);
    } else {
        CHECK(read.count == 0 && read.sum_ns == 0);
    }
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Compresses without searching for repetitions (RFC 1950, RFC 1951 section 3.2.4): a compressor's
 * memory took most of the time. Returns the length, which is `size` + STORED_MORE. */
static size_t store(uint8_t *to, const uint8_t *plain, size_t size)
{
    const uint8_t head[] = {
        0x78, 1, 1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)
    };
    memcpy(to, head, sizeof(head));
    memcpy(to + sizeof(head), plain, size);
    put_u32(to + sizeof(head) + size, (uint32_t)adler32(1, plain, (uInt)size));
    return size + STORED_MORE;
}

/* The counters alone, in a valid frame. */
static void try_counters(const uint8_t *data, size_t size)
{
    static const uint8_t range[] = { 0, 0, 0, 0, 0, 0, 0, 3,    0,    0,    0,    0,
                                     0, 0, 0, 1, 0, 0, 3, 0x46, 0x30, 0xb8, 0xa0, 0 };
    static uint8_t plain[FRAME + COUNTERS_MAX], packed[8 + sizeof(plain) + STORED_MORE];
    static char text[BASE64_CHARS(sizeof(packed))];
    put_u32(plain, 0x1c849313);
    put_u32(plain + 4, (uint32_t)size);
    memcpy(plain + 8, range, sizeof(range));
    if (size > 0)
        memcpy(plain + FRAME, data, size);
    const size_t packed_len = store(packed + 8, plain, FRAME + size);
    put_u32(packed, 0x1c849314);
    put_u32(packed + 4, (uint32_t)packed_len);
    base64_encode(packed, 8 + packed_len, text);
    try_text(span_of(text, BASE64_CHARS(8 + packed_len)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > COUNTERS_MAX)
        return 0;
    try_text(span_of((const char *)data, size));
    try_counters(data, size);
    return 0;
}
