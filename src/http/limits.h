/* SPDX-License-Identifier: MIT
 *
 * Every bound on what a client may send or make the server build, in one place. All are
 * compile-time constants. A request above a bound gets the status that the bound names.
 */
#pragma once

enum {
    /* Bytes of a request line and fields together. 431 above it. This is twice the default of
     * nginx. Large cookies reach 8 to 16 KiB. */
    HTTP_HEAD_MAX = 24 * 1024,

    /* Bytes of a request target. 414 above it. RFC 9112 section 3 recommends at least 8,000. */
    HTTP_TARGET_MAX = 8 * 1024,

    /* Bytes of a method. 501 above it. The longest registered method has 17 bytes. */
    HTTP_METHOD_MAX = 32,

    /* Field lines in one request. 431 above it. */
    HTTP_FIELDS_MAX = 128,

    /* Bytes of a field's name. 431 above it. Registered names stay well below 64. */
    HTTP_FIELD_NAME_MAX = 256,

    /* Empty lines skipped before a request line (RFC 9112 section 2.2). 400 above it. */
    HTTP_LEADING_EMPTY_LINES_MAX = 4,

    /* Bytes of a request body, which this server discards. 413 above it. */
    HTTP_BODY_MAX = 1024 * 1024,

    /* Bytes of a chunk-size line with its extensions, and of all trailer lines together. 400
     * above them. */
    HTTP_CHUNK_LINE_MAX = 4 * 1024,
    HTTP_TRAILERS_MAX = 8 * 1024,

    /* Bytes of a response's head, as a client reads it. This is twice what proxies accept. */
    HTTP_RESPONSE_HEAD_MAX = 32 * 1024,

    /* Ranges that one answer carries after merging, and ranges read in one field. Above either,
     * the field is ignored and the whole file is sent (RFC 9110 section 14.2). */
    HTTP_RANGES_MAX = 16,
    HTTP_RANGES_READ_MAX = 64,

    /* Entity tags compared in one If-Match or If-None-Match. Above it, the field does not match. */
    HTTP_ETAGS_MAX = 256,
};
