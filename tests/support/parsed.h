/* SPDX-License-Identifier: MIT
 *
 * Whether two parsed heads say the same.
 */
#pragma once

#include "http/request.h"

/* Empty pieces are equal wherever they are. */
static inline bool parsed_same_slice(struct http_slice a, struct http_slice b)
{
    return a.len == b.len && (a.len == 0 || a.at == b.at);
}

static inline bool parsed_same(const struct http_request *a, const struct http_request *b)
{
    bool same = a->present == b->present && a->repeated == b->repeated &&
                a->head_len == b->head_len && a->method == b->method && a->minor == b->minor &&
                parsed_same_slice(a->method_text, b->method_text) &&
                parsed_same_slice(a->target, b->target) && parsed_same_slice(a->line, b->line);
    for (unsigned i = 0; i < HTTP_FIELD_COUNT; i++)
        same = same && parsed_same_slice(a->field[i], b->field[i]);
    return same;
}
