/* SPDX-License-Identifier: MIT
 *
 * Heads of a site's answers: those written into the free end of the output buffer, and those
 * prepared once for each variant of a file. http/head.h writes the lines.
 *
 * Private to session/.
 */
#pragma once

#include "base/buf.h"
#include "http/status.h"
#include "session/answer.h"

/* Positions in a file's prepared head. Each answer other than 200 continues from one of them. */
enum {
    SESSION_MARK_TYPE,      /* after Content-Length: a 206 with one range */
    SESSION_MARK_ENCODING,  /* after Content-Type: a multipart 206 */
    SESSION_MARK_VALIDATORS /* after all that describes the bytes: a 304 */
};

enum session_publication {
    SESSION_PUBLISHED, /* the cache has the entry */
    SESSION_REFUSED,   /* the cache does not take it: the entry answers this request alone */
    SESSION_HEADLESS   /* the same, and a variant has no head */
};

/* Prepares the 200 head of every variant of a newly loaded entry, with the fields and marks of the
 * rules in x->match. Then offers the entry to the cache. The status line, Date and what depends on
 * the connection are added for each answer. A variant has no head when memory is missing or the
 * head does not fit. Such an entry never enters the cache: it would keep failing from there. The
 * entry may move: *entry is where it is afterwards. */
enum session_publication session_head_publish(const struct session_exchange *x,
                                              struct site_entry **entry);

/* The part of a prepared head that begins at a mark. */
struct span session_head_from(const struct site_file *file, unsigned mark);

/* Whether the answer is a head without a body (HEAD). */
bool session_head_only(const struct session_exchange *x);

/* Writes status line, Date, Connection and the site's own fields at the free end of the output
 * buffer. Nothing is staged until session_head_stage. The first is for the answer with an entry,
 * whose prepared head has the fields of rules. The second adds these fields itself. */
struct buf session_head_begin(const struct session_exchange *x, enum http_status status);
struct buf session_head_begin_apart(const struct session_exchange *x, enum http_status status);

/* Ends a head: the fields of every answer, and the empty line. */
void session_head_end(const struct session_exchange *x, struct buf *head);

/* Adds to the output what has been written to `head`, body included. */
void session_head_stage(struct session_exchange *x, const struct buf *head);
