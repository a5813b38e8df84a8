/* SPDX-License-Identifier: MIT
 *
 * Heads of answers that came before. A server's answers for one target have the same
 * head for a second at a time, until its Date is another; and the same bytes mean the
 * same. Comparing them takes a tenth of the time that reading them does.
 */
#pragma once

#include "base/check.h"
#include "http/response.h"

enum { LOAD_RECALL_HEADS = 8, LOAD_RECALL_MAX = 1000 };

/* Zero it before the first call. Of all heads that are read with it `head_method` is the same. */
struct load_recall {
    struct load_recalled {
        struct http_response response;
        char bytes[LOAD_RECALL_MAX];
    } head[LOAD_RECALL_HEADS];
};

/* As http_response_parse of a response that was zeroed, of target number `target`. */
MUST_USE enum http_parse load_recall_parse(struct load_recall *recall, uint32_t target,
                                           struct http_response *response, struct span bytes,
                                           bool head_method);
