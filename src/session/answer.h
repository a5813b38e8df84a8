/* SPDX-License-Identifier: MIT
 *
 * Writing answers: given what was asked and what was found, stages the head and
 * the body in the session's output buffer and tells the access log. What to
 * answer is decided in session/plan.c.
 *
 * Private to session/.
 */
#pragma once

#include "http/target.h"
#include "session/buffer.h"
#include "session/session.h"
#include "session/thread.h"

/* Of a list field that comes in several lines, what is looked at. */
enum { SESSION_LIST_MAX = 1024 };

/* One request and its answer in the making. */
struct session_exchange {
    struct session *session;
    struct session_thread *thread;
    struct session_buffer *out;         /* has SESSION_ANSWER_ROOM */
    const struct http_request *request; /* NULL when none could be read */
    const char *head;                   /* the bytes it was parsed from */
    struct span request_line;           /* for the log; may be empty */
    struct http_target target;          /* zero until it is resolved */
    const struct session_site *site;    /* NULL until it is known */
    uint64_t id;                        /* for the log and error pages */
    uint64_t began_ns;                  /* its first byte came */
    bool close;                         /* the connection ends with this answer */
    bool head_only;                     /* HEAD asks, also where no more could be read */
};

/* Sends one variant of an entry, whole or in part, as the request's conditions
 * and ranges ask: 200, 206, 304, 412 or 416. Takes the caller's reference when
 * `owned`; without one the entry must be valid until the next quiesce. */
void session_answer_entry(struct session_exchange *x, struct site_entry *entry, bool owned);

/* Sends a text of the caller's, which it takes and frees. */
void session_answer_text(struct session_exchange *x, struct span type, char *text, size_t len);

/* Sends a status with a page for people: the site's own where it has one, the
 * built-in one elsewhere. */
void session_answer_status(struct session_exchange *x, enum http_status status);

/* 301 to the same path with a slash at its end. */
void session_answer_redirect(struct session_exchange *x);

/* The answer to OPTIONS. */
void session_answer_options(struct session_exchange *x);

/* Stages the next part of a multipart/byteranges answer, once the last one is
 * out; false when there is none. */
bool session_answer_next_part(struct session_buffer *out);

/* The answer is out, or has failed: logs it and lets go of what it held. */
void session_answer_end(struct session_thread *thread, struct session_buffer *out);
