/* SPDX-License-Identifier: MIT
 *
 * The framing of a multipart/byteranges body (RFC 9110 section 14.6). Each range is a part,
 * behind a delimiter and a head of its own. A closing delimiter ends the body. Only the framing
 * is written here. The caller sends the bytes of the parts, so that they can come from a file.
 */
#pragma once

#include "base/buf.h"
#include "http/range.h"

/* One body. Zeroed, it is a body that has ended. */
struct http_multipart {
    struct http_ranges ranges;
    struct span type;  /* the media type of the representation; borrowed */
    uint64_t size;     /* of the representation, in bytes */
    uint64_t boundary; /* any number; the boundary is its text */
    unsigned left;     /* pieces of framing to come: part heads and the closing delimiter */
};

/* The longest piece of framing. A media type has at most 127 + 1 + 127 bytes (RFC 6838 section
 * 4.2). */
enum { HTTP_MULTIPART_FRAMING_MAX = 512 };

/* Begins a body with at least one range. The boundary must not occur in the parts, so the caller
 * gives a number that a client cannot choose. */
struct http_multipart http_multipart_begin(const struct http_ranges *ranges, struct span type,
                                           uint64_t size, uint64_t boundary);

/* The length of the whole body in bytes, with framing. It does not depend on progress. */
uint64_t http_multipart_length(const struct http_multipart *body);

/* Appends the Content-Type line of the answer, which names the boundary. */
void http_multipart_add_type(const struct http_multipart *body, struct buf *head);

/* Appends the next piece of framing. Sets *ret_range to the bytes to send behind it, which are none
 * (`len` 0) behind the closing delimiter. False, with nothing appended, when the body has ended. */
bool http_multipart_next(struct http_multipart *body, struct buf *text,
                         struct http_range *ret_range);
