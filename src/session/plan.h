/* SPDX-License-Identifier: MIT
 *
 * Deciding what to answer: from a parsed request, through its host and path, to
 * an entry, a listing, a redirect or an error. How answers are written is in
 * session/answer.c.
 *
 * Private to session/.
 */
#pragma once

#include "http/body.h"
#include "session/answer.h"

/* Answers one request into x->out. Sets *ret_body to the request body that has
 * to be discarded next (kind HTTP_BODY_NONE: there is none). */
void session_plan(struct session_exchange *x, struct http_body *ret_body);
