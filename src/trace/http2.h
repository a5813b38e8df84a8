/* SPDX-License-Identifier: MIT
 *
 * One request over HTTP/2 as `weir trace --http-version 2` sends it, and the head of its answer. It
 * knows no socket. The bodies of answers are not read, and early hints (103) are skipped.
 */
#pragma once

#include "base/buf.h"
#include "base/check.h"

struct trace_http2;

/* Makes the frames of a request from its head in the form of HTTP/1.1, whose target is a path, and
 * the scheme "http" or "https". NULL: out of memory. Free it with trace_http2_free. */
struct trace_http2 *trace_http2_new(struct span request, struct span scheme);
void trace_http2_free(struct trace_http2 *t);

/* The bytes to send. Lent until trace_http2_free. */
struct span trace_http2_frames(const struct trace_http2 *t);

/* The request as the server's parser gets it, and as a struct http_request refers to it. Empty when
 * the request is malformed. Lent until trace_http2_free. */
struct span trace_http2_text(const struct trace_http2 *t);

enum trace_http2_result {
    TRACE_HTTP2_MORE,   /* `frames` has no answer yet */
    TRACE_HTTP2_HEAD,   /* the head is in `head`, in the form of HTTP/1.1 */
    TRACE_HTTP2_REFUSED /* the server has reset the stream or ended the connection */
};

/* Looks for the answer in all bytes that the server has sent so far. `why` gets a reason when the
 * request was refused. */
enum trace_http2_result trace_http2_read(struct trace_http2 *t, struct span frames,
                                         struct buf *head, struct buf *why);

/* How many bytes the head has as a header block, once it was read. */
size_t trace_http2_block_bytes(const struct trace_http2 *t);
