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

static inline void hpack_free(struct http2_table *table)
{
    free(table->memory);
}
