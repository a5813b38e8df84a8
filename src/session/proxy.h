/* SPDX-License-Identifier: MIT
 *
 * The beginning of a connection from a proxy: the PROXY header names the client, and from then on
 * the session has that client's address. The setting proxy-protocol says which addresses are
 * proxies, because any client can write such a header.
 *
 * A connection from a proxy must begin with the header, also before TLS. Another beginning is
 * refused, because its requests would count for the proxy. The limits of an address apply to the
 * client, so the connection is admitted when the header is complete, and not when it is accepted.
 *
 * The header must be complete at the session's first deadline, which no byte of it moves.
 */
#pragma once

#include "base/check.h"
#include "http/fault.h"
#include "session/session.h"

struct session_shared;

/* Whether a connection from `peer` begins with a PROXY header. Any thread. */
bool session_proxy_expects(const struct session_shared *shared, const struct session_peer *peer);

/* Whether the address may have one connection more (session/limits.h). It may if there are no
 * limits, or if it is a proxy that forwards requests (session/forwarded.h). Any thread. */
MUST_USE bool session_proxy_admit(const struct session_shared *shared, struct session_peer *peer,
                                  uint64_t now_ns);

/* The rest is private to session/. */

/* As session_feed, for a session whose header is not complete. */
unsigned session_proxy_feed(struct session *s, struct span in, uint64_t now_ns);

/* The session ends, and its address has one connection less. */
void session_proxy_release(struct session *s);

/* The fault of bytes that begin a connection and are no request: HTTP_FAULT_PROXY_UNEXPECTED if
 * they begin a PROXY header, or else `fault`. */
enum http_fault session_proxy_fault(struct span bytes, enum http_fault fault);
