/* SPDX-License-Identifier: MIT
 *
 * A request body that is being read past. A request with a chunked body waits here until the body
 * has ended, because a malformed body makes its answer 400. A body of known length cannot be
 * malformed, so its request is answered before the body arrives.
 *
 * Private to session/.
 */
#pragma once

#include "base/check.h"
#include "http/body.h"

struct session_waiting {
    struct http_request request;
    uint64_t began_ns; /* when its first byte arrived */
    char head[];       /* the bytes that `request` was parsed from */
};

struct session_body {
    struct http_body framing;
    struct session_waiting *waiting; /* NULL: the request has its answer */
    uint64_t limit_ns;               /* the end of the time for the whole body */
    uint64_t received_bytes;         /* since the deadline last moved */
};

/* Returns the beginning of a body. `request` waits for its end, with a copy of its head. `request`
 * is NULL when it has its answer. NULL: out of memory. */
struct session_body *session_body_new(struct http_body framing, const struct http_request *request,
                                      const char *head, uint64_t began_ns);

/* Accepts NULL. */
void session_body_free(struct session_body *body);
