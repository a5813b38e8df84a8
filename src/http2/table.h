/* SPDX-License-Identifier: MIT
 *
 * The dynamic table of an HPACK decoder (RFC 7541 sections 2.3 and 4), in memory of the caller.
 *
 * A connection keeps its table while it is idle, so the table is small. A known name is one byte.
 * A value is stored only if a reader of the table uses fields of that name (`keeps`). Of any other
 * field only the lengths are stored, and whether it was valid: eviction needs no more.
 *
 * It allocates nothing. http2/hpack.h reports HTTP2_HPACK_GROW when the memory is too small.
 */
#pragma once

#include "base/span.h"
#include "http2/limits.h"

#include <stdint.h>

enum http2_name {
    HTTP2_NAME_OTHER, /* a name that names.def does not list */
#define NAME(name, text, index) HTTP2_NAME_##name,
#include "http2/names.def"
#undef NAME
    HTTP2_NAME_COUNT
};

/* A set of names. */
#define HTTP2_NAME_BIT(name) (UINT64_C(1) << (HTTP2_NAME_##name))

struct http2_table_entry;

/* Set it with http2_table_init. All members are private. */
struct http2_table {
    char *memory;         /* the entries, free space, then their text */
    uint64_t keeps;       /* the names whose values are stored */
    uint32_t memory_size; /* bytes */
    uint16_t size;        /* as RFC 7541 section 4.1 counts it */
    uint16_t size_max;    /* the encoder's maximum */
    uint16_t limit;       /* what the encoder may choose as its maximum */
    uint16_t first;       /* the place of the oldest entry */
    uint16_t count;       /* entries */
    uint16_t text_base;   /* the position of the first byte of text in the memory */
    uint16_t text_end;    /* the position after the newest entry's text */
    bool must_shrink;     /* the next block must begin with a size update */
};

enum {
    /* Memory that is enough for every table, and for most clients. */
    HTTP2_TABLE_MEMORY_MAX = HTTP2_TABLE_MAX + HTTP2_TABLE_MAX / 32 * 8 + 64,
    HTTP2_TABLE_MEMORY_USUAL = 320,
};

/* An empty table without memory. `keeps`: the names whose values are stored; with
 * HTTP2_NAME_BIT(OTHER), also names that names.def does not list. */
void http2_table_init(struct http2_table *table, uint64_t keeps);

/* Bytes of memory with which the table can take one more field of `name_len` and `value_len`, at
 * least as many as it has. With 0 and 0: the bytes that an idle table needs. */
size_t http2_table_memory_needed(const struct http2_table *table, size_t name_len,
                                 size_t value_len);

/* Copies the contents to `memory` of `size` bytes, at least http2_table_memory_needed(table, 0, 0),
 * and borrows it from now on. The caller frees the earlier memory, table->memory. With `size` 0 the
 * table must be empty. */
void http2_table_move(struct http2_table *table, char *memory, size_t size);

/* The peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of `limit`, at most HTTP2_TABLE_MAX. When
 * this is below the encoder's maximum, the next block must begin with a size update (RFC 9113
 * section 4.3.1). */
void http2_table_set_limit(struct http2_table *table, unsigned limit);
