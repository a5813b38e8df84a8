/* SPDX-License-Identifier: MIT
 *
 * Bytes that wait: an unfinished head, or requests behind a full output, with how
 * far the parser has come and when they came.
 *
 * Private to session/.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "http/request.h"

#include <stdbool.h>

enum { SESSION_INPUT_MAX = 64 * 1024 };

/* When requests began to come: the one that is parsed next, and those behind it. */
struct session_arrival {
    uint64_t first_ns, rest_ns;
};

struct session_input {
    struct http_request request;
    struct session_arrival arrival;
    size_t at, len, size;
    char bytes[];
};

/* Puts bytes behind those that wait, in *input, which may be NULL and may move. False without
 * memory. */
MUST_USE bool session_input_add(struct session_input **input, struct span bytes);

/* The same where none waits, with what goes with them. */
MUST_USE bool session_input_begin(struct session_input **input, struct span bytes,
                                  const struct http_request *request,
                                  struct session_arrival arrival);
