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
};

/* Joins lines `Name: value`, NULL at the end; `headers` may be NULL. False without memory.
 * session_fields_free frees the result. */
MUST_USE bool session_fields_join(struct session_fields *ret_fields, const char *const *headers);
void session_fields_free(struct session_fields *fields);
