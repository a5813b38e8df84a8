/* SPDX-License-Identifier: MIT
 *
 * Conditional requests (RFC 9110 section 13), evaluated in the order of
 * section 13.2.2.
 */
#pragma once

#include "http/request.h"

/* What is known of the selected representation. */
struct http_validators {
    struct span etag;   /* with its quotes; strong; empty when there is none */
    int64_t modified_s; /* Last-Modified, seconds since 1970; negative when there is none */
};

enum http_precondition {
    HTTP_PROCEED,             /* answer as if no precondition was there */
    HTTP_IGNORE_RANGE,        /* the same, but If-Range says the Range no longer fits */
    HTTP_ANSWER_NOT_MODIFIED, /* 304 */
    HTTP_ANSWER_FAILED        /* 412 */
};

/* Evaluates If-Match, If-Unmodified-Since, If-None-Match, If-Modified-Since and
 * If-Range, in that order, for a GET or HEAD whose answer without them would be
 * 200 or 206. Dates that cannot be read or come twice are ignored; a date in
 * the future of `now_s` makes If-Modified-Since compare all the same. A date in
 * If-Range fits only when it is the very one and its second is over at `now_s`
 * (section 8.8.2.2). A list of entity tags is read up to its first malformed
 * element. */
enum http_precondition http_precondition_evaluate(const struct http_request *request,
                                                  const char *head, struct http_validators current,
                                                  int64_t now_s);
