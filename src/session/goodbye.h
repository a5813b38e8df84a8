/* SPDX-License-Identifier: MIT
 *
 * The ends of a connection of HTTP/2 of which GOAWAY tells the client (RFC 9113 section 6.8).
 *
 * A graceful end has two of these frames. The first one announces the end, so that requests that
 * cross it are still answered. The client acknowledges the PING behind it, or its time ends. The
 * second one names the last stream.
 *
 * After a failure there is one, and no stream continues.
 *
 * Private to session/.
 */
#pragma once

#include "http2/limits.h"
#include "session/buffer.h"
#include "session/session.h"

/* Whether the output has space for session_goodbye_add. */
static inline bool session_goodbye_has_room(const struct session *s)
{
    return s->output->len + 2 * HTTP2_REPLY_ROOM <= SESSION_BUFFER_BYTES;
}

/* Whether the connection should carry no further request, and the client does not know it yet.
 * Counts a connection that has reached its age or its number of requests. */
bool session_goodbye_is_due(const struct session *s, uint64_t now_ns);

/* Begins the graceful end, or shortens it: appends a GOAWAY frame to the output. */
void session_goodbye_add(struct session *s, uint64_t now_ns);

/* Ends the connection because of `fault` (enum http2_fault), with GOAWAY in the output. */
void session_goodbye_fail(struct session *s, unsigned fault);

/* The connection has failed, and its GOAWAY is in the output already. */
void session_goodbye_after_failure(struct session *s);

/* Whether the connection has failed, as by its budget, and GOAWAY is in the output now. That needs
 * space there: otherwise a later call adds it. */
bool session_goodbye_reports_failure(struct session *s);
