/* SPDX-License-Identifier: MIT */
#include "session/input.h"

#include "http/limits.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 2 * 1024 }; /* most heads fit */

static_assert(SESSION_READ_MAX + HTTP_HEAD_MAX <= SESSION_INPUT_MAX, "a head and one read fit");

/* Makes space for `count` more bytes. */
static bool reserve(struct session_input **ref, size_t count)
{
    struct session_input *input = *ref;
    if (input && input->at + input->len + count <= input->size)
        return true;
    size_t len = input ? input->len : 0;
    if (input && len + count <= input->size) {
        memmove(input->bytes, input->bytes + input->at, len);
        input->at = 0;
        return true;
    }
    size_t size = FIRST;
    while (size < len + count)
        size *= 2;
    CHECK(size <= SESSION_INPUT_MAX);
    struct session_input *bigger = malloc(sizeof(*bigger) + size);
    if (!bigger)
        return false;
    *bigger = (struct session_input){ .len = len, .size = size };
    if (input) {
        bigger->request = input->request;
        bigger->arrival = input->arrival;
        memcpy(bigger->bytes, input->bytes + input->at, len);
    }
    free(input);
    *ref = bigger;
    return true;
}

bool session_input_add(struct session_input **input, struct span bytes)
{
    if (!reserve(input, bytes.len))
        return false;
    memcpy((*input)->bytes + (*input)->at + (*input)->len, bytes.at, bytes.len);
    (*input)->len += bytes.len;
    return true;
}

bool session_input_begin(struct session_input **input, struct span bytes,
                         const struct http_request *request, struct session_arrival arrival)
{
    CHECK(!*input);
    if (!session_input_add(input, bytes))
        return false;
    (*input)->request = *request;
    (*input)->arrival = arrival;
    return true;
}
