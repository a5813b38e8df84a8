/* SPDX-License-Identifier: MIT
 *
 * How a request body is delimited (RFC 9112 section 6), and reading past it, or
 * past that of a response (http/response.h). A file server has no use for bodies:
 * they are framed exactly, counted, and thrown away, so that the next request on
 * the connection is found where it really begins.
 */
#pragma once

#include "http/request.h"

enum http_body_kind {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_CLOSE /* of a response alone: up to the end of the connection */
};

/* Progress through one body. Zeroed is "no body". */
struct http_body {
    uint8_t kind;       /* enum http_body_kind */
    uint8_t state;      /* the chunk reader's own */
    uint8_t fault;      /* enum http_fault; why http_body_begin refused it */
    uint16_t line_size; /* bytes of the present chunk line, or of the trailers */
    bool unbounded;     /* of a response: HTTP_BODY_MAX is no matter */
    uint64_t remaining; /* bytes left of the body (LENGTH) or of the present chunk (CHUNKED) */
    uint64_t total;     /* body bytes read, framing not counted */
};

/* Decides the framing (RFC 9112 section 6.3) and sets *ret_body to its
 * beginning. Returns 0, or the status to send before closing: 400 for a framing
 * that could be read in two ways (both fields, differing or malformed lengths,
 * chunked not last or twice, Transfer-Encoding in HTTP/1.0), 413 when the
 * announced length is past HTTP_BODY_MAX, 501 for a coding other than chunked.
 * An announced length of 0 is HTTP_BODY_NONE. After a refusal only `fault` is set. */
int http_body_begin(struct http_body *ret_body, const struct http_request *request,
                    const char *head);

enum http_body_step {
    HTTP_BODY_DONE,  /* the body has ended; *ret_consumed bytes of `bytes` were its */
    HTTP_BODY_MORE,  /* all of `bytes` was body (*ret_consumed says so), and it goes on */
    HTTP_BODY_FAILED /* malformed chunking (400) or past HTTP_BODY_MAX (413): close */
};

/* Discards body bytes from the front of `bytes`. Any split of the input gives
 * the same result; a chunk whose size would take the body past HTTP_BODY_MAX
 * fails at the digit that says so. Chunk extensions and trailers are checked for form, bounded
 * and dropped (RFC 9112 sections 7.1.1 and 7.1.2). *ret_status is set on
 * HTTP_BODY_FAILED. */
enum http_body_step http_body_discard(struct http_body *body, struct span bytes,
                                      size_t *ret_consumed, enum http_status *ret_status);

/* Begins a chunked body of a response, which may be as long as it likes. */
void http_body_begin_chunked(struct http_body *ret_body);

/* Reads on from the front of `bytes` as http_body_discard does, but stops behind the first run of
 * data, which *ret_data lends for as long as `bytes` lives (empty: there was none). HTTP_BODY_MORE
 * with *ret_consumed below the length of `bytes`: call again with the rest. */
enum http_body_step http_body_read(struct http_body *body, struct span bytes, size_t *ret_consumed,
                                   struct span *ret_data, enum http_status *ret_status);
