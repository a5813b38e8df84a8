/* SPDX-License-Identifier: MIT
 *
 * A site's own fields, as lines that every answer carries. A lifetime in them is meant for the
 * site's files. An error with that lifetime would hide a file that appears, or an outage that
 * ends, from every client that stored the error. So errors carry the other lines only.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

/* Lines with their CRLF. */
struct session_fields {
    struct span all;       /* the lines with a lifetime are last */
    struct span of_errors; /* the front of `all`, without a lifetime */
    struct span over_tls;  /* lines for TLS connections only */
    struct span block;     /* `all` and `over_tls` as HTTP/2 sends them */
    struct span block_over_tls;
};

/* Joins lines `Name: value`, NULL at the end; `headers` may be NULL. `over_tls` is one more line,
 * which answers over plain HTTP do not have, or NULL. False without memory. session_fields_free
 * frees the result. */
MUST_USE bool session_fields_join(struct session_fields *ret_fields, const char *const *headers,
                                  const char *over_tls);
void session_fields_free(struct session_fields *fields);
