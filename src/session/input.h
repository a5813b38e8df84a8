/* SPDX-License-Identifier: MIT
 *
 * Unparsed input of a session: an unfinished head, or requests that wait for space in the output.
 * It keeps the parser's progress and the arrival times with the bytes.
 *
 * Private to session/.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "http/request.h"

#include <stdbool.h>

enum { SESSION_INPUT_MAX = 64 * 1024 };

/* When requests began to arrive: the one that is parsed next, and those behind it. */
struct session_arrival {
    uint64_t first_ns, rest_ns;
};

struct session_input {
    struct http_request request;
    struct session_arrival arrival;
    size_t at, len, size;
    char bytes[];
};

/* Appends bytes to *input, which may be NULL and may move. False: out of memory. */
MUST_USE bool session_input_add(struct session_input **input, struct span bytes);

/* Creates *input, which must be NULL, from bytes, the parser's progress and the arrival times.
 * False: out of memory. */
MUST_USE bool session_input_begin(struct session_input **input, struct span bytes,
                                  const struct http_request *request,
                                  struct session_arrival arrival);
