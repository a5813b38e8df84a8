/* SPDX-License-Identifier: MIT
 *
 * Header blocks for tests: bytes from hexadecimal text, and memory for a decoder's table.
 */
#pragma once

#include "base/check.h"
#include "http2/table.h"

#include <stdio.h>
#include <stdlib.h>

/* Writes the bytes of a text of hexadecimal digits and spaces to `out`. Returns how many. */
static inline size_t hpack_bytes(const char *hex, char *out, size_t size)
{
    size_t len = 0;

    for (; *hex; hex++) {
        unsigned byte;
        if (*hex == ' ')
            continue;
        CHECK(len < size && sscanf(hex, "%2x", &byte) == 1);
        out[len++] = (char)byte;
        hex++;
    }
    return len;
}

/* Moves a table to `size` bytes of memory, without a byte to spare for a sanitizer. */
static inline void hpack_grow(struct http2_table *table, size_t size)
{
    char *memory = malloc(size), *before = table->memory;

    CHECK(memory && size > http2_table_used(table));
    http2_table_move(table, memory, size);
    free(before);
}

/* Writes the fields of `text`, `name: value` and a newline each, as literals without indexing and
 * without Huffman code, so that any bytes can be sent. Returns the bytes of the block. Names and
 * values have less than 16,384 bytes. */
static inline size_t hpack_literals(struct span text, char *out, size_t size)
{
    size_t len = 0;

    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        CHECK(end);
        struct span line = span_of(text.at, (size_t)(end - text.at));
        size_t colon = line.len > 0 && line.at[0] == ':' ? 1 : 0;
        while (colon + 1 < line.len && memcmp(line.at + colon, ": ", 2) != 0)
            colon++;
        struct span part[2] = { span_first(line, colon), span_skip(line, colon + 2) };
        CHECK(len + line.len + 8 <= size);
        out[len++] = 0;
        for (unsigned i = 0; i < 2; i++) {
            if (part[i].len < 127) {
                out[len++] = (char)part[i].len;
            } else {
                out[len++] = 127;
                out[len++] = (char)(0x80 | ((part[i].len - 127) & 127));
                out[len++] = (char)((part[i].len - 127) >> 7);
            }
            memcpy(out + len, part[i].at, part[i].len);
            len += part[i].len;
        }
        text = span_skip(text, line.len + 1);
    }
    return len;
}

static inline void hpack_free(struct http2_table *table)
{
    free(table->memory);
}
