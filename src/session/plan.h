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
 * next, or to kind HTTP_BODY_NONE. */
void session_plan(struct session_exchange *x, struct http_body *ret_body);
