/* SPDX-License-Identifier: MIT
 *
 * Response heads: written field by field into the free end of the output buffer,
 * or once and for all into the entry of a file.
 *
 * Private to session/.
 */
#pragma once

#include "base/buf.h"
#include "http/status.h"
#include "session/answer.h"

/* Where in a file's ready-made head the answers that are not 200 begin. */
enum {
    SESSION_MARK_TYPE,      /* behind Content-Length: 206 goes on here */
    SESSION_MARK_ENCODING,  /* behind Content-Type: multipart 206 goes on here */
    SESSION_MARK_VALIDATORS /* behind all that describes the bytes: 304 goes on here */
};

/* Gives every variant of a newly loaded entry its head of a 200, all but the
 * status line, Date and what depends on the connection. False when a variant is left
 * without one, for want of memory or because it does not fit: such an entry is not for
 * the cache, where the want would last. */
bool session_head_prepare(const struct session_exchange *x, struct site_entry *entry);

/* The part of a ready-made head that begins at a mark. */
struct span session_head_from(const struct site_file *file, unsigned mark);

/* The request wants the head only (HEAD). */
bool session_head_only(const struct session_exchange *x);

/* Status line, Date, Connection and the site's own fields, at the free end of the
 * output buffer. Nothing is staged until session_head_stage. */
struct buf session_head_begin(const struct session_exchange *x, enum http_status status);

/* Server, and the empty line. */
void session_head_end(const struct session_exchange *x, struct buf *head);

/* What has been written to `head`, and behind it, is now part of the output. */
void session_head_stage(struct session_exchange *x, const struct buf *head);
