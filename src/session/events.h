/* SPDX-License-Identifier: MIT
 *
 * The input of a connection of HTTP/2. Frames become requests, bodies and resets. Each request is
 * answered as it arrives.
 *
 * Private to session/.
 */
#pragma once

#include "session/input.h"
#include "session/session.h"

/* The time over which the rate of a request body is averaged. */
#define SESSION_BODY_RATE_NS UINT64_C(5000000000)

/* Consumes frames from the front of `in`, until an unfinished one is left or the output has no
 * space. `began` says when the bytes began to arrive. The session has its memory. */
void session_events_take(struct session *s, struct span *in, struct session_arrival *began);

/* Answers the requests whose answers are no longer pending, or overdue, while the output has
 * space. */
void session_events_resume(struct session *s, uint64_t now_ns);

/* Bodies of requests are overdue: the requests that wait for them get 408. */
void session_events_expire(struct session *s, uint64_t now_ns);
