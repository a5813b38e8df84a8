/* SPDX-License-Identifier: MIT */
#include "session/fields.h"

#include "base/buf.h"
#include "http2/response.h"
#include "rules/lifetime.h"

#include <stdlib.h>

static void add_lines(struct buf *text, const char *const *headers, bool granting)
{
    for (const char *const *header = headers; header && *header; header++) {
        if (rules_lifetime_given(span_text(*header)) != granting)
            continue;
        buf_add(text, span_text(*header));
        buf_add(text, SPAN("\r\n"));
    }
}

bool session_fields_join(struct session_fields *ret_fields, const char *const *headers,
                         const char *over_tls)
{
    const char *const last[] = { over_tls, NULL };
    size_t len = over_tls ? strlen(over_tls) + 2 : 0;
    for (const char *const *header = headers; header && *header; header++)
        len += strlen(*header) + 2;
    /* HPACK has no `: ` and CRLF, and at most 4 bytes for each length. */
    const size_t block_len = 4 * len;
    char *memory = malloc(len + block_len + 1);
    if (!memory)
        return false;
    struct buf text = buf_over(memory, len), block = buf_over(memory + len, block_len);
    add_lines(&text, headers, false);
    ret_fields->of_errors = buf_span(&text);
    add_lines(&text, headers, true);
    ret_fields->all = buf_span(&text);
    add_lines(&text, last, false);
    ret_fields->over_tls = span_skip(buf_span(&text), ret_fields->all.len);
    http2_response_add_lines(&block, ret_fields->all);
    ret_fields->block = buf_span(&block);
    http2_response_add_lines(&block, ret_fields->over_tls);
    ret_fields->block_over_tls = span_skip(buf_span(&block), ret_fields->block.len);
    CHECK(!block.overflow);
    return true;
}

void session_fields_free(struct session_fields *fields)
{
    free((void *)(uintptr_t)fields->all.at);
}
