/* SPDX-License-Identifier: MIT
 *
 * Writing answers. They go into the session's output buffer, head and body, and are logged.
 * session/plan.c decides what to answer.
 *
 * Private to session/.
 */
#pragma once

#include "http/target.h"
#include "session/buffer.h"
#include "session/session.h"
#include "session/thread.h"

/* Bytes that are read of a list field in several lines. */
enum { SESSION_LIST_MAX = 1024 };

/* One request and its answer. */
struct session_exchange {
    struct session *session;
    struct session_thread *thread;
    struct session_buffer *out;         /* has SESSION_ANSWER_ROOM free bytes */
    const struct http_request *request; /* NULL when the bytes were no request */
    const char *head;                   /* the bytes that it was parsed from */
    struct span request_line;           /* for the log; may be empty */
    struct http_target target;          /* zero until it is resolved */
    const struct session_site *site;    /* NULL until it is known */
    uint64_t id;                        /* for the log and error pages */
    uint64_t began_ns;                  /* when its first byte arrived */
    bool close;                         /* the connection ends with this answer */
    bool head_only;                     /* the method is HEAD; set when only that could be read */
    bool body_read;                     /* the body of the request has already been read */
    bool by_accept;                     /* the answer was selected by Accept */
};

/* Answers with one variant of an entry, whole or in part, as the request's conditions and ranges
 * require: 200, 206, 304, 412 or 416. When `owned`, takes the caller's reference. Otherwise the
 * entry must stay valid until the next quiesce. */
void session_answer_entry(struct session_exchange *x, struct site_entry *entry, bool owned);

/* Answers HEAD for a listing that is not rendered. The fields that only a rendered listing has are
 * left out (RFC 9110 section 9.3.2). */
void session_answer_listing_head(struct session_exchange *x, struct span type);

/* Whether the answer depends on more than the path: the request has a condition or a range. */
bool session_answer_is_conditional(const struct session_exchange *x);

/* Answers with a status and a page: the site's own page if it has one, or the built-in one. */
void session_answer_status(struct session_exchange *x, enum http_status status);

/* Answers with a status and one line of plain text. */
void session_answer_text(struct session_exchange *x, enum http_status status, struct span text);

/* Answers 301 to the same path with a slash at its end. */
void session_answer_redirect(struct session_exchange *x);

/* Answers 308 to the same path and query at `origin`: scheme, host and port. */
void session_answer_redirect_to(struct session_exchange *x, struct span origin);

/* Answers OPTIONS. */
void session_answer_options(struct session_exchange *x);

/* Stages the next part of a multipart/byteranges answer, when the part before it is sent. False
 * when no part is left. */
bool session_answer_next_part(struct session_buffer *out);

/* The open answer is sent or has failed. Logs it, and releases what it holds. */
void session_answer_end(struct session_thread *thread, struct session_answer *answer);
