/* SPDX-License-Identifier: MIT
 *
 * Conditional requests (RFC 9110 section 13), evaluated in the order of section 13.2.2.
 */
#pragma once

#include "http/request.h"

/* The validators of the selected representation. */
struct http_validators {
    struct span etag;   /* with its quotes; strong; empty: none */
    int64_t modified_s; /* Last-Modified, seconds since 1970; negative: none */
};

enum http_precondition {
    HTTP_PROCEED,             /* answer as if there was no precondition */
    HTTP_IGNORE_RANGE,        /* the same, but without the Range: If-Range does not match */
    HTTP_ANSWER_NOT_MODIFIED, /* 304 */
    HTTP_ANSWER_FAILED        /* 412 */
};

/* Evaluates If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since and If-Range, in
 * this order, for a GET or HEAD whose answer without them is 200 or 206. Dates that are
 * malformed or repeated are ignored. If-Modified-Since is compared even when its date is later
 * than `now_s`. A date in If-Range matches only when it is equal and its second is over at
 * `now_s` (section 8.8.2.2). A list of entity tags is read up to its first malformed element. */
enum http_precondition http_precondition_evaluate(const struct http_request *request,
                                                  const char *head, struct http_validators current,
                                                  int64_t now_s);
