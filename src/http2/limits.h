/* SPDX-License-Identifier: MIT
 *
 * Every bound on what an HTTP/2 peer may send or make the server keep, in one place. All are
 * compile-time constants. Bounds that hold for a request in both versions are in http/limits.h.
 */
#pragma once

#include "http/limits.h"

enum {
    /* ---- header blocks (http2/hpack.h, http2/request.h) ---- */

    /* Bytes of a decoder's dynamic table, as RFC 7541 section 4.1 counts them. This is the initial
     * value of SETTINGS_HEADER_TABLE_SIZE, so no setting announces it. */
    HTTP2_TABLE_MAX = 4096,

    /* Fields of one request, pieces of cookies included. 431 above it. */
    HTTP2_FIELDS_MAX = HTTP_FIELDS_MAX,

    /* Bytes of one decoded field list: names, values, and 32 for each field (RFC 9113 section
     * 6.5.2). 431 above it. Announced as SETTINGS_MAX_HEADER_LIST_SIZE. */
    HTTP2_HEADER_LIST_MAX = HTTP_HEAD_MAX + 32 * HTTP2_FIELDS_MAX,
};
