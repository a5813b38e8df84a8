/* SPDX-License-Identifier: MIT
 *
 * The header block of a request, or its trailers, as HTTP/1.1 text (RFC 9113 section 8). The block
 * is decoded and checked by the rules of HTTP/2. The text then passes the one strict parser
 * (http/request.h), so a request means the same in both versions.
 *
 * The text has the request line, Host, and the other fields of http/request.h in their order.
 * Further fields are checked, counted and dropped, cookies too: the server reads none of them.
 * Content-Length is not in the text, because DATA frames end the body.
 */
#pragma once

#include "http2/hpack.h"

enum http2_request_result {
    HTTP2_REQUEST_DECODED,
    HTTP2_REQUEST_GROW,      /* give the table `reader.needed` bytes of memory, and call again */
    HTTP2_REQUEST_MALFORMED, /* a stream error, PROTOCOL_ERROR (RFC 9113 section 8.1.1) */
    HTTP2_REQUEST_TOO_LARGE, /* more fields or bytes than the limits: 431 */
    HTTP2_REQUEST_BROKEN     /* a connection error, COMPRESSION_ERROR (RFC 9113 section 4.3) */
};

/* CONNECT has none. */
enum http2_scheme { HTTP2_SCHEME_NONE, HTTP2_SCHEME_HTTP, HTTP2_SCHEME_HTTPS, HTTP2_SCHEME_OTHER };

/* Bytes of storage for one request, with some to spare for copies in steps of 16 bytes. A thread
 * needs one storage. */
enum { HTTP2_REQUEST_STORAGE = 4 * (HTTP2_HPACK_TEXT_MAX + 128) };

#define HTTP2_REQUEST_NO_LENGTH UINT64_MAX

/* One request. The first part is for the caller. */
struct http2_request {
    struct span text;        /* the head as HTTP/1.1, with its empty line */
    struct span priority;    /* the last value of Priority (RFC 9218); empty when it is absent */
    uint64_t content_length; /* of Content-Length, or HTTP2_REQUEST_NO_LENGTH */
    uint8_t scheme;          /* enum http2_scheme */
    bool navigates;          /* a browser opens a page (Sec-Fetch-Mode: navigate) */

    struct span block;          /* private to http2/, as all that follows */
    uint32_t path_at, path_end; /* where :path is in the block; 0: it has none */
    char *storage;
    uint64_t seen;       /* the names that occurred */
    uint32_t bytes_left; /* of HTTP2_HEADER_LIST_MAX */
    uint32_t fields_left;
    uint32_t text_end; /* 0: the request line is not written yet */
    uint32_t path_len, authority_len;
    uint8_t method_len;
    uint8_t result; /* enum http2_request_result so far */
    bool trailers;
    struct http2_hpack_reader reader; /* only `needed` is for the caller */
};

/* The names that a server's table keeps: for http2_table_init. */
extern const bool http2_request_keeps[HTTP2_NAME_COUNT];

/* Begins with `block`, all of one header block. Borrows it, and `storage` of HTTP2_REQUEST_STORAGE
 * bytes, until the block is decoded. */
void http2_request_begin(struct http2_request *request, struct http2_table *table,
                         struct span block, char *storage, bool trailers);

/* Decodes the block. DECODED, MALFORMED and TOO_LARGE have read all of it, so the table is right
 * for the next block. `text` and `priority` point into the storage. With TOO_LARGE `text` is a head
 * with the first fields, or empty when the request line is incomplete. With MALFORMED and for
 * trailers it is empty. Of several faults the first by position counts. */
enum http2_request_result http2_request_decode(struct http2_request *request);
