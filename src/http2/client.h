/* SPDX-License-Identifier: MIT
 *
 * Header blocks as a client writes and reads them, for `weir load`.
 *
 * Requests are made ready once for each target. A block of the first kind stores its fields in the
 * server's dynamic table; a block of the second kind refers to them. Browsers and h2load do the
 * same. A server that allows no table gets plain literals.
 */
#pragma once

#include "base/buf.h"
#include "http2/hpack.h"

enum http2_client_form {
    HTTP2_CLIENT_PLAIN, /* literals; for a server whose table is too small */
    HTTP2_CLIENT_FIRST, /* the first block of a connection: all fields but :method and :path go
                           into the server's table */
    HTTP2_CLIENT_LATER, /* a later block of the connection: refers to those fields */
};

/* Appends the block of a request, from its HTTP/1.1 head with one Host. Method, scheme, authority
 * and path come first, then the other lines. Connection and the like are left out (RFC 9113 section
 * 8.2.2). All requests of one connection must have the same lines, except method and target.
 * Returns the bytes that FIRST needs in the server's table. Above SETTINGS_HEADER_TABLE_SIZE, use
 * PLAIN. */
size_t http2_client_add_request(struct buf *block, struct span head, struct span scheme,
                                enum http2_client_form form);

enum http2_client_result {
    HTTP2_CLIENT_DECODED,
    HTTP2_CLIENT_GROW,      /* give the table `reader.needed` bytes of memory, and call again */
    HTTP2_CLIENT_MALFORMED, /* a stream error, PROTOCOL_ERROR */
    HTTP2_CLIENT_BROKEN,    /* a connection error, COMPRESSION_ERROR */
};

/* Bytes of storage for one response. A thread needs one storage. */
enum { HTTP2_CLIENT_STORAGE = 2 * HTTP2_HPACK_TEXT_MAX };

#define HTTP2_CLIENT_NO_LENGTH UINT64_MAX

struct http2_client_response {
    uint64_t content_length; /* or HTTP2_CLIENT_NO_LENGTH */
    uint16_t status;         /* 100 to 599; below 200 another head follows. 0 for trailers */

    struct http2_hpack_reader reader;          /* only `needed` is for the caller */
    bool trailers, regular, malformed, broken; /* private */
};

/* The names that a client's table must keep: for http2_table_init. */
extern const bool http2_client_keeps[HTTP2_NAME_COUNT];

/* Begins with `block`, all of one header block, and borrows it until it is decoded. */
void http2_client_begin(struct http2_client_response *response, struct http2_table *table,
                        struct span block, bool trailers);

/* Decodes the block with `storage` of HTTP2_CLIENT_STORAGE bytes. The header list of a response has
 * no limit but that of the block. */
enum http2_client_result http2_client_decode(struct http2_client_response *response, char *storage);
