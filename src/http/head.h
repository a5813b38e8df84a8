/* SPDX-License-Identifier: MIT
 *
 * Writing the head of a response (RFC 9112 sections 4 and 5), line by line. The sites and the
 * statistics page both write their heads here, so that a field has one form everywhere. Which
 * fields an answer has is the caller's decision.
 *
 * Every function appends whole lines to a `struct buf`, whose overflow the caller checks once.
 */
#pragma once

#include "base/buf.h"
#include "http/precondition.h"
#include "http/range.h"
#include "http/status.h"

/* The status line, as `HTTP/1.1 200 OK`. It is the first line. */
void http_head_add_status(struct buf *head, enum http_status status);

/* `name: value`. Neither may hold a CR or an LF. */
void http_head_add_field(struct buf *head, struct span name, struct span value);

/* A field whose value is a date, from seconds since 1970. */
void http_head_add_date(struct buf *head, struct span name, int64_t seconds);

void http_head_add_length(struct buf *head, uint64_t len);

/* ETag and Last-Modified, each if the representation has one. */
void http_head_add_validators(struct buf *head, struct http_validators validators);

/* Content-Range of a part of a representation of `size` bytes. A range of no bytes stands for a
 * 416 (RFC 9110 section 14.4). */
void http_head_add_content_range(struct buf *head, struct http_range range, uint64_t size);

/* The end of every head: `X-Content-Type-Options: nosniff`, then `last_lines`, which may be empty,
 * and the empty line. Without nosniff a browser may treat a text as a script. */
void http_head_end(struct buf *head, struct span last_lines);
