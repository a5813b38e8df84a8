/* SPDX-License-Identifier: MIT
 *
 * HPACK (RFC 7541): reading the fields of a header block one by one, and writing fields without a
 * dynamic table. It knows no rule of HTTP: http2/request.h and http2/client.h have those.
 */
#pragma once

#include "base/buf.h"
#include "http2/table.h"

enum http2_hpack {
    HTTP2_HPACK_FIELD, /* *ret_field is the next field */
    HTTP2_HPACK_END,   /* the block has ended */
    HTTP2_HPACK_GROW,  /* the table needs `needed` bytes of memory (http2_table_move): call again */
    HTTP2_HPACK_BROKEN /* RFC 7541 is violated: a connection error, COMPRESSION_ERROR */
};

enum {
    /* Bytes for the decoded text of one name or value. The rest of a longer text is not needed. Its
     * field is above HTTP2_HEADER_LIST_MAX, and no table can store it. */
    HTTP2_HPACK_TEXT_MAX = HTTP2_HEADER_LIST_MAX,
};

/* A block that is being read. The caller may change `value_storage` between fields. */
struct http2_hpack_reader {
    const unsigned char *at, *end; /* private */
    struct http2_table *table;
    char *name_storage;  /* HTTP2_HPACK_TEXT_MAX bytes for a decoded name */
    char *value_storage; /* the same for a decoded value */
    size_t needed;       /* with HTTP2_HPACK_GROW: bytes of memory for the table */
    bool changes;        /* what was read so far has changed the table */
};

/* Reads the size updates at the beginning. Private to http2_hpack_begin. */
bool http2_hpack_update(struct http2_hpack_reader *reader);

/* Begins with `block`, all of one header block. Borrows it and both storages until its end is read.
 * False: a size update at its beginning is wrong, and the block is broken. */
static inline bool http2_hpack_begin(struct http2_hpack_reader *reader, struct http2_table *table,
                                     struct span block, char *name_storage, char *value_storage)
{
    enum { UPDATE = 0x20, UPDATE_MASK = 0xe0 };

    reader->at = (const unsigned char *)block.at;
    reader->end = reader->at + block.len;
    reader->table = table;
    reader->name_storage = name_storage;
    reader->value_storage = value_storage;
    reader->changes = false;
    if (block.len > 0 && (*reader->at & UPDATE_MASK) == UPDATE)
        return http2_hpack_update(reader);
    return true;
}

/* Reads a field that is not an index below 127. Private to http2_hpack_next. */
enum http2_hpack http2_hpack_next_other(struct http2_hpack_reader *reader,
                                        struct http2_field *ret_field);

/* Reads the next field. Its spans point to the block, the storages, the table or static memory, and
 * are valid until the next call. After GROW, the same field is read again. */
static inline enum http2_hpack http2_hpack_next(struct http2_hpack_reader *reader,
                                                struct http2_field *ret_field)
{
    enum { FIRST_INDEX = 0x81, DYNAMIC_INDEX = 0x80 + HTTP2_TABLE_STATIC_COUNT + 1, LONG = 0xff };

    if (reader->at == reader->end)
        return HTTP2_HPACK_END;
    unsigned byte = *reader->at;
    if (byte - FIRST_INDEX < DYNAMIC_INDEX - FIRST_INDEX) {
        reader->at++;
        *ret_field = http2_table_static[byte - FIRST_INDEX + 1];
        return HTTP2_HPACK_FIELD;
    }
    if (byte - DYNAMIC_INDEX < LONG - DYNAMIC_INDEX &&
        http2_table_get(reader->table, byte - DYNAMIC_INDEX, ret_field)) {
        reader->at++;
        return HTTP2_HPACK_FIELD;
    }
    struct http2_field other;
    enum http2_hpack step = http2_hpack_next_other(reader, &other);
    if (step == HTTP2_HPACK_FIELD)
        *ret_field = other;
    return step;
}

/* Appends a field as a literal without indexing (RFC 7541 section 6.2.2), with the name from the
 * static table if it is there. Names are written in lower case. Names of more than
 * HTTP_FIELD_NAME_MAX bytes overflow. Texts are Huffman-coded where that is shorter. */
void http2_hpack_add_field(struct buf *block, struct span name, struct span value);

/* Appends an integer behind the `mark` bits of its first byte (RFC 7541 section 5.1). */
void http2_hpack_add_integer(struct buf *block, unsigned mark, unsigned prefix_bits, size_t value);

/* Appends a string literal (RFC 7541 section 5.2). */
void http2_hpack_add_string(struct buf *block, struct span text);

/* Appends a size update to 0. The first block of a connection begins with it, because the encoder
 * uses no dynamic table. */
void http2_hpack_add_no_table(struct buf *block);
