/* SPDX-License-Identifier: MIT
 *
 * The head of one request: request line and field lines (RFC 9112 sections 2
 * to 5), parsed in place. Nothing is copied or allocated; positions are kept
 * as offsets from the head's first byte, so the bytes may move between calls.
 *
 * Strict on purpose: a line ends with CRLF and nothing else, no space before
 * a colon, no folding, no control bytes. What two servers could read in two
 * ways is refused here, because that is what request smuggling lives on.
 *
 * It does not decide what the request means: body framing is http/body.h,
 * the target is http/target.h.
 */
#pragma once

#include "base/span.h"
#include "http/fault.h"
#include "http/limits.h"

#include <stdint.h>

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_OPTIONS,
    HTTP_METHOD_KNOWN,  /* registered or common, not served here: 405 with Allow */
    HTTP_METHOD_UNKNOWN /* a valid token that means nothing to us: 501 */
};

/* A piece of the head: offset from its first byte, and length. */
struct http_slice {
    uint16_t at;
    uint16_t len;
};

/* The fields that a file server looks at. Every other field is checked for
 * form and passed over. FIELD(enum name, field name in lower case) */
#define HTTP_FIELDS(FIELD) \
    FIELD(HOST, "host") \
    FIELD(CONNECTION, "connection") \
    FIELD(CONTENT_LENGTH, "content-length") \
    FIELD(TRANSFER_ENCODING, "transfer-encoding") \
    FIELD(EXPECT, "expect") \
    FIELD(RANGE, "range") \
    FIELD(IF_RANGE, "if-range") \
    FIELD(IF_MATCH, "if-match") \
    FIELD(IF_NONE_MATCH, "if-none-match") \
    FIELD(IF_MODIFIED_SINCE, "if-modified-since") \
    FIELD(IF_UNMODIFIED_SINCE, "if-unmodified-since") \
    FIELD(ACCEPT, "accept") \
    FIELD(AUTHORIZATION, "authorization") \
    FIELD(ACCEPT_ENCODING, "accept-encoding") \
    FIELD(REFERER, "referer") \
    FIELD(USER_AGENT, "user-agent") \
    FIELD(LAST_EVENT_ID, "last-event-id")

#define FIELD(name, text) HTTP_FIELD_##name,
enum http_field { HTTP_FIELDS(FIELD) HTTP_FIELD_COUNT };
#undef FIELD

/* One parsed head. Zero it before the first call. */
struct http_request {
    uint32_t present;  /* bit 1 << HTTP_FIELD_X: the field was there */
    uint32_t repeated; /* the same, for fields that came more than once */
    uint16_t head_len; /* bytes of the whole head with its empty line; set with HTTP_PARSED */
    uint8_t method;    /* enum http_method */
    uint8_t minor;     /* HTTP/1.minor: 0, or 1 (later minors are answered as 1) */
    uint8_t fault;     /* enum http_fault; set with HTTP_PARSE_FAILED */
    struct http_slice method_text;
    struct http_slice target;
    struct http_slice line; /* the request line, without leading empty lines or CRLF */
    struct http_slice field[HTTP_FIELD_COUNT]; /* first value of each, trimmed; len 0 when absent */

    uint16_t next_line;  /* parser's own: offset where it goes on */
    uint16_t line_count; /* parser's own: empty lines, and once the request line is read, fields */
};

enum http_parse {
    HTTP_PARSED,      /* the head is whole: `head_len` bytes of it */
    HTTP_PARSE_MORE,  /* a valid beginning; call again with more bytes */
    HTTP_PARSE_FAILED /* not a request this server reads; *ret_status says why */
};

/* Parses the head that begins at `bytes.at`. After HTTP_PARSE_MORE, call it
 * again with the same bytes and more behind them (at any address): lines that
 * were whole are not read twice. Bytes behind the head are not looked at.
 * A head cut anywhere gives the same end result as the whole head at once.
 *
 * On HTTP_PARSE_FAILED, *ret_status is 400, 414, 431, 501 or 505 and the
 * connection must be closed after it, for where the request ends is unknown.
 * Of several faults the first by position counts. `line` then holds, for the
 * log, the request line: all of it, or up to the byte that was wrong, included. */
enum http_parse http_request_parse(struct http_request *request, struct span bytes,
                                   enum http_status *ret_status);

/* The first value of a field; an empty span when it is absent. `head` is the
 * address the request was parsed at; the span lives as long as those bytes. */
static inline struct span http_request_field(const struct http_request *request, const char *head,
                                             enum http_field field)
{
    struct http_slice s = request->field[field];
    return span_of(head + s.at, s.len);
}

static inline bool http_request_has(const struct http_request *request, enum http_field field)
{
    return (request->present & (1u << field)) != 0;
}

static inline bool http_request_repeats(const struct http_request *request, enum http_field field)
{
    return (request->repeated & (1u << field)) != 0;
}

/* Every value of a field that may come in several lines: calls again from
 * *cursor (0 at first) give the next line's value, trimmed; false at the end.
 * Only for parsed heads. Slower than http_request_field: it reads the head again. */
bool http_request_next_value(const struct http_request *request, const char *head,
                             enum http_field field, size_t *cursor, struct span *ret_value);

/* A list field that may come in several lines, as one list (RFC 9110 section 5.3).
 * Lines are joined in `storage`, as many as fit whole; a single one is lent as it
 * stands. Empty when the field is absent. */
struct span http_request_list(const struct http_request *request, const char *head,
                              enum http_field field, char *storage, size_t storage_size);

/* Whether the connection may carry another request after this one
 * (RFC 9112 section 9.3): 1.1 unless `close`, 1.0 only with `keep-alive`. */
bool http_request_persists(const struct http_request *request, const char *head);
