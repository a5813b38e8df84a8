/* SPDX-License-Identifier: MIT
 *
 * One request and its answer: these functions put the answer to what has arrived into the output
 * of the session, which has space for it.
 *
 * Private to session/.
 */
#pragma once

#include "http/request.h"
#include "http/status.h"
#include "session/answer.h"

/* An exchange whose request began to arrive at `began_ns`. */
struct session_exchange session_exchange_begin(struct session *s, uint64_t began_ns,
                                               const struct session_pending *resumed);

/* Answers a request of HTTP/2, or what is none, into x->out. With x->pending the answer is pending,
 * and the caller takes that. */
void session_exchange_answer_framed(struct session_exchange *x, const struct http_request *request,
                                    const char *head);
void session_exchange_fail_framed(struct session_exchange *x, enum http_status status);

/* Answers a request that was parsed from `head`, and whose first byte arrived at `began_ns`. Sets
 * s->body where a body follows, and s->pending where the answer is pending. `body_read`: the
 * request has waited for the end of its body. */
void session_exchange_answer(struct session *s, const struct http_request *request,
                             const char *head, uint64_t began_ns, bool body_read);

/* Answers the request in s->pending, which has waited. It may have to wait again. */
void session_exchange_resume(struct session *s);

/* Answers a request with 503, and ends the connection. */
void session_exchange_refuse(struct session *s, uint64_t began_ns);

/* Answers bytes that are no request, and ends the connection. */
void session_exchange_fail(struct session *s, enum http_status status, struct span request_line,
                           bool head_only, uint64_t began_ns);

/* Answers bytes that are no request with 400 and a line of plain text. Ends the connection. */
void session_exchange_fail_with(struct session *s, struct span text, uint64_t began_ns);

/* Answers a request that waits for its body (s->body->waiting), which never ends well. */
void session_exchange_fail_waiting(struct session *s, enum http_status status);
