/* SPDX-License-Identifier: MIT
 *
 * Range fields: the ranges lie inside the file, do not overlap, and never add up to more than
 * the file. The first eight bytes are the file's size.
 */
#include "base/check.h"
#include "http/range.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t file_size = 0;
    if (size < sizeof(file_size))
        return 0;
    memcpy(&file_size, data, sizeof(file_size));
    struct span field = span_of((const char *)data + sizeof(file_size), size - sizeof(file_size));
    struct http_ranges ranges = { 0 };
    if (http_range_parse(field, file_size, &ranges) != HTTP_RANGE_SATISFIABLE)
        return 0;
    CHECK(ranges.count >= 1 && ranges.count <= HTTP_RANGES_MAX);
    uint64_t total = 0;
    for (unsigned i = 0; i < ranges.count; i++) {
        struct http_range a = ranges.range[i];
        CHECK(a.len >= 1 && a.first < file_size && a.len <= file_size - a.first);
        CHECK(a.len <= file_size - total);
        total += a.len;
        for (unsigned k = 0; k < i; k++) {
            struct http_range b = ranges.range[k];
            CHECK(a.first > b.first + b.len || b.first > a.first + a.len);
        }
    }
    return 0;
}
