/* SPDX-License-Identifier: MIT
 *
 * Response heads as header blocks (RFC 9113 section 8.3.2). The blocks use no dynamic table, so the
 * block of a file can be made once and sent on any connection.
 *
 * Every function appends to a `struct buf`, whose overflow the caller checks once. The first block
 * of a connection begins with http2_hpack_add_no_table.
 */
#pragma once

#include "base/buf.h"
#include "http2/hpack.h"

/* The bytes that http2_response_add_status appends at most, and http2_response_add_date always. */
enum { HTTP2_RESPONSE_STATUS_MAX = 5, HTTP2_RESPONSE_DATE_BYTES = 32 };

/* `:status`. It is the first field. */
void http2_response_add_status(struct buf *block, unsigned status);

/* Date, from the 29 bytes of an HTTP date. */
void http2_response_add_date(struct buf *block, const char *date);

/* Location, for a target that is written for one answer. It is not compressed: that would cost more
 * than it saves. */
void http2_response_add_location(struct buf *block, struct span target);

/* Appends lines of an HTTP/1.1 head, `Name: value` and CRLF each, as fields. It stops at the empty
 * line or at the end of `lines`. Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding and
 * Upgrade are dropped (RFC 9113 section 8.2.2). */
void http2_response_add_lines(struct buf *block, struct span lines);

/* Appends a whole HTTP/1.1 head: its status, then its lines. */
void http2_response_add_head(struct buf *block, struct span head);
