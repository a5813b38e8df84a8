/* SPDX-License-Identifier: MIT
 *
 * Which lines give a lifetime. Cache-Control has names of its own for single caches, which end
 * with the same words (RFC 9213 section 2).
 */
#include "session/fields.h"

#include "base/buf.h"
#include "http/list.h"
#include "http2/response.h"

#include <stdlib.h>

/* Takes the part of *rest before `separator`, trimmed, and the separator. */
static struct span take_part(struct span *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->len);
    struct span part = span_first(*rest, end ? (size_t)(end - rest->at) : rest->len);
    *rest = span_skip(*rest, part.len + (end != NULL));
    return span_trim(part);
}

/* Whether a directive lets a cache store an answer, or use it for some time (RFC 9111 section
 * 5.2.2, RFC 5861, RFC 8246). A lifetime of 0 seconds is none. */
static bool directive_grants(struct span directive)
{
    static const char *const granting[] = { "max-age",   "s-maxage", "stale-while-revalidate",
                                            "immutable", "public",   "stale-if-error" };
    const struct span name = take_part(&directive, '=');
    if (span_equal(span_trim(directive), SPAN("0")))
        return false;
    for (size_t i = 0; i < sizeof(granting) / sizeof(granting[0]); i++)
        if (span_equal_nocase(name, span_text(granting[i])))
            return true;
    return false;
}

static bool line_grants(struct span line)
{
    static const struct span suffix = SPAN("Cache-Control");
    const struct span name = take_part(&line, ':');
    struct span directive;
    if (span_equal_nocase(name, SPAN("Expires")))
        return true;
    if (!span_equal_nocase(name, SPAN("Surrogate-Control")) &&
        (name.len < suffix.len ||
         !span_equal_nocase(span_skip(name, name.len - suffix.len), suffix)))
        return false;
    while (http_list_next(&line, &directive))
        if (directive_grants(directive))
            return true;
    return false;
}

static void add_lines(struct buf *text, const char *const *headers, bool granting)
{
    for (const char *const *header = headers; header && *header; header++) {
        if (line_grants(span_text(*header)) != granting)
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
