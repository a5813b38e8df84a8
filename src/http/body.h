/* SPDX-License-Identifier: MIT
 *
 * The framing of a message body (RFC 9112 section 6), and reading past a body. A file server
 * needs no request bodies. It frames them exactly, counts them and discards them, so that it
 * finds the next request where it really begins. A client reads the bodies of responses with the
 * same code (http/response.h).
 */
#pragma once

#include "http/request.h"

enum http_body_kind {
    HTTP_BODY_NONE,
    HTTP_BODY_LENGTH,
    HTTP_BODY_CHUNKED,
    HTTP_BODY_CLOSE /* responses only: up to the end of the connection */
};

/* Progress through one body. Zeroed, it is no body. */
struct http_body {
    uint8_t kind;       /* enum http_body_kind */
    uint8_t state;      /* private to the chunk reader */
    uint8_t fault;      /* enum http_fault: why http_body_begin refused it */
    uint16_t line_size; /* bytes of the current chunk line, or of the trailers */
    bool unbounded;     /* of a response: HTTP_BODY_MAX does not apply */
    uint64_t remaining; /* bytes left of the body (LENGTH) or of the chunk (CHUNKED) */
    uint64_t total;     /* body bytes read, without framing */
};

/* Decides the framing of a request body (RFC 9112 section 6.3), and sets *ret_body to its
 * beginning. Returns 0, or the status to send before closing:
 *   400  the framing could be read in two ways. Examples are both fields, differing or malformed
 *        lengths, chunked not last or twice, and Transfer-Encoding in HTTP/1.0
 *   413  the announced length is above HTTP_BODY_MAX
 *   501  a coding other than chunked
 * An announced length of 0 is HTTP_BODY_NONE. After a refusal only `fault` is set. */
int http_body_begin(struct http_body *ret_body, const struct http_request *request,
                    const char *head);

enum http_body_step {
    HTTP_BODY_DONE,  /* the body has ended, after *ret_consumed bytes of `bytes` */
    HTTP_BODY_MORE,  /* all of `bytes` belonged to the body, which continues */
    HTTP_BODY_FAILED /* malformed chunking (400) or above HTTP_BODY_MAX (413): close */
};

/* Discards body bytes from the front of `bytes`. Any split of the input gives the same result. A
 * chunk that would take the body past HTTP_BODY_MAX fails at the digit of its size that decides
 * it. Chunk extensions and trailers are checked for form, bounded and dropped (RFC 9112 sections
 * 7.1.1 and 7.1.2). *ret_status is set on HTTP_BODY_FAILED. */
enum http_body_step http_body_discard(struct http_body *body, struct span bytes,
                                      size_t *ret_consumed, enum http_status *ret_status);

/* Begins a chunked body of a response, which may have any length. */
void http_body_begin_chunked(struct http_body *ret_body);

/* Reads the body as http_body_discard does, but stops after the first run of data. *ret_data
 * lends that data as long as `bytes` lives; it may be empty. HTTP_BODY_MORE with *ret_consumed
 * below the length of `bytes` means: call again with the rest. */
enum http_body_step http_body_read(struct http_body *body, struct span bytes, size_t *ret_consumed,
                                   struct span *ret_data, enum http_status *ret_status);
