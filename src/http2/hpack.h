/* SPDX-License-Identifier: MIT
 *
 * HPACK (RFC 7541): reading the fields of a header block one by one, and writing fields without a
 * dynamic table. It knows no rule of HTTP: http2/request.h and http2/client.h have those.
 */
#pragma once

#include "base/buf.h"
#include "http2/table.h"

enum http2_hpack {
    HTTP2_HPACK_FIELD,  /* *ret_field is the next field */
    HTTP2_HPACK_END,    /* the block has ended */
    HTTP2_HPACK_GROW,   /* the table has no memory for the next field: see http2_table_move */
    HTTP2_HPACK_BROKEN, /* RFC 7541 is violated: a connection error, COMPRESSION_ERROR */
};

enum {
    /* Bytes for the decoded text of one field. The bytes of a longer name or value are not needed:
     * the field is above HTTP2_HEADER_LIST_MAX, and no table can store it. */
    HTTP2_HPACK_TEXT_MAX = HTTP2_HEADER_LIST_MAX,
};

struct http2_field {
    struct span name;  /* `at` is NULL when the bytes of a name of the table are not stored */
    struct span value; /* the same; the length is always right */
    uint8_t id;        /* enum http2_name */
    bool valid;        /* name and value have no byte that RFC 9113 section 8.2.1 forbids */
};

/* A block that is being read. */
struct http2_hpack_reader {
    const unsigned char *at, *end;
    struct http2_table *table;
    size_t needed; /* with HTTP2_HPACK_GROW: bytes of memory for the table */
    bool began;    /* a field was read, so no size update may follow */
};

/* Borrows `block`, all of one header block, until its end is read. */
void http2_hpack_begin(struct http2_hpack_reader *reader, struct http2_table *table,
                       struct span block);

/* Reads the next field. Decoded text goes to `storage`, which has HTTP2_HPACK_TEXT_MAX bytes for
 * the value and as many behind them for the name. The field's spans point to the block, to the
 * storage, to the table or to static memory, and are valid until the next call.
 * After HTTP2_HPACK_GROW, give the table memory and call again. */
enum http2_hpack http2_hpack_next(struct http2_hpack_reader *reader, char *storage,
                                  struct http2_field *ret_field);

/* Appends a field as a literal without indexing, with the name from the static table if it is
 * there. Names are written in lower case. Texts are Huffman-coded where that is shorter. */
void http2_hpack_add_field(struct buf *block, struct span name, struct span value);

/* Appends a size update to 0. The first block of a connection begins with it, because the encoder
 * uses no dynamic table. */
void http2_hpack_add_no_table(struct buf *block);
