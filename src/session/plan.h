/* SPDX-License-Identifier: MIT
 *
 * Deciding what to answer. A parsed request has a host and a path, and they lead to an entry, a
 * listing, a redirect or an error. session/answer.c writes the answer.
 *
 * Private to session/.
 */
#pragma once

#include "http/body.h"
#include "session/answer.h"

/* Answers one request into x->out. Sets *ret_body to the request body that must be discarded
 * next, or to kind HTTP_BODY_NONE. With x->pending there is no answer yet, and nothing else has
 * changed. */
void session_plan(struct session_exchange *x, struct http_body *ret_body);

/* Whether the answer waits for the end of the request's body, which is then *ret_body. That is so
 * for a chunked body, unless the client itself waits for an answer (Expect). */
bool session_plan_waits(const struct http_request *request, const char *head,
                        struct http_body *ret_body);
