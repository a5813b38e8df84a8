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

static size_t bucket_bytes(void)
{
    return histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t);
}

static void try_text(struct span text)
{
    struct load_durations read, again;
    CHECK(load_durations_init(&read) == 0 && load_durations_init(&again) == 0);
    if (load_hdr_decode(text, &read) == 0) {
        CHECK(read.count == histogram_total(read.bucket, bucket_bytes() / sizeof(uint64_t)));
        char *written = load_hdr_encode(&read);
        CHECK(written && load_hdr_decode(span_text(written), &again) == 0);
        CHECK(memcmp(read.bucket, again.bucket, bucket_bytes()) == 0);
        free(written);
    } else {
        CHECK(read.count == 0);
    }
    load_durations_done(&read);
    load_durations_done(&again);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The counters alone, in a valid frame. */
static void try_counters(const uint8_t *data, size_t size)
{
    static const uint8_t range[] = { 0, 0, 0, 0, 0, 0, 0, 3,    0,    0,    0,    0,
                                     0, 0, 0, 1, 0, 0, 3, 0x46, 0x30, 0xb8, 0xa0, 0 };
    uLongf packed_len = compressBound(40 + size);
    uint8_t *plain = calloc(1, 40 + size), *packed = malloc(8 + packed_len);
    char *text = malloc(BASE64_CHARS(8 + packed_len));
    CHECK(plain && packed && text);
    put_u32(plain, 0x1c849313);
    put_u32(plain + 4, (uint32_t)size);
    memcpy(plain + 8, range, sizeof(range));
    if (size > 0)
        memcpy(plain + 40, data, size);
    CHECK(compress2(packed + 8, &packed_len, plain, 40 + size, 1) == Z_OK);
    put_u32(packed, 0x1c849314);
    put_u32(packed + 4, (uint32_t)packed_len);
    base64_encode(packed, 8 + packed_len, text);
    try_text(span_of(text, BASE64_CHARS(8 + packed_len)));
    free(plain);
    free(packed);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 65536)
        return 0;
    try_text(span_of((const char *)data, size));
    try_counters(data, size);
    return 0;
}
