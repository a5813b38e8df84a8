/* SPDX-License-Identifier: MIT */
#include "session/body.h"

#include <stdlib.h>

struct session_body *session_body_new(struct http_body framing, const struct http_request *request,
                                      const char *head, uint64_t began_ns)
{
    struct session_body *body = malloc(sizeof(*body));
    if (!body)
        return NULL;
    *body = (struct session_body){ .framing = framing };
    if (!request)
        return body;
    body->waiting = malloc(sizeof(*body->waiting) + request->head_len);
    if (!body->waiting) {
        free(body);
        return NULL;
    }
    body->waiting->request = *request;
    body->waiting->began_ns = began_ns;
    memcpy(body->waiting->head, head, request->head_len);
    return body;
}

void session_body_free(struct session_body *body)
{
    if (!body)
        return;
    free(body->waiting);
    free(body);
}
