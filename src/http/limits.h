/* SPDX-License-Identifier: MIT
 *
 * Every bound on what a peer may send or make us build, in one place. All are
 * compile-time: a request is either inside them or gets the status named here.
 */
#pragma once

enum {
    /* Request line and fields together. 431 past it. Twice what nginx takes by
     * default; large cookies reach 8 to 16 KiB. */
    HTTP_HEAD_MAX = 24 * 1024,

    /* Request target. 414 past it. RFC 9112 section 3 asks for at least 8,000. */
    HTTP_TARGET_MAX = 8 * 1024,

    /* Method token. 501 past it; the longest registered one has 17 bytes. */
    HTTP_METHOD_MAX = 32,

    /* Field lines in one request. 431 past it. */
    HTTP_FIELDS_MAX = 128,

    /* One field's name. 431 past it; registered ones stay well below 64. */
    HTTP_FIELD_NAME_MAX = 256,

    /* Empty lines skipped before a request line (RFC 9112 section 2.2). 400 past it. */
    HTTP_LEADING_EMPTY_LINES_MAX = 4,

    /* A request body, which this server only ever discards. 413 past it. */
    HTTP_BODY_MAX = 1024 * 1024,

    /* One chunk-size line with its extensions, and all trailer lines together. 400 past it. */
    HTTP_CHUNK_LINE_MAX = 4 * 1024,
    HTTP_TRAILERS_MAX = 8 * 1024,

    /* A response's head, read by a client: status line and fields. Twice what proxies take. */
    HTTP_RESPONSE_HEAD_MAX = 32 * 1024,

    /* Ranges after coalescing that one answer carries, and ranges looked at in
     * one field; past either the field is ignored and the whole file sent
     * (RFC 9110 section 14.2). */
    HTTP_RANGES_MAX = 16,
    HTTP_RANGES_READ_MAX = 64,

    /* Entity tags compared in one If-Match or If-None-Match; past it, no match. */
    HTTP_ETAGS_MAX = 256,
};
