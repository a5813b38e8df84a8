/* SPDX-License-Identifier: MIT
 *
 * The head of one request: request line and field lines (RFC 9112 sections 2 to 5), parsed in
 * place. Nothing is copied or allocated. Positions are offsets from the head's first byte, so the
 * bytes may move between calls.
 *
 * The parser is strict. A line ends with CRLF only. There is no space before a colon, no folding,
 * and no control byte. Input that two servers could read in two ways is refused, because request
 * smuggling depends on it.
 *
 * It does not decide what the request means: http/body.h reads the framing of its body, and
 * http/target.h its target.
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
    HTTP_METHOD_KNOWN,  /* a registered method that is not served: 405 with Allow */
    HTTP_METHOD_UNKNOWN /* any other token: 501 */
};

/* A piece of the head: offset from its first byte, and length. */
struct http_slice {
    uint16_t at;
    uint16_t len;
};

/* The fields that a file server reads. Every other field is checked for form and ignored.
 * FIELD(enum name, field name in lower case) */
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
    FIELD(CACHE_CONTROL, "cache-control") \
    FIELD(REFERER, "referer") \
    FIELD(USER_AGENT, "user-agent") \
    FIELD(LAST_EVENT_ID, "last-event-id") \
    FIELD(ORIGIN, "origin") \
    FIELD(TRACEPARENT, "traceparent") \
    FIELD(AVAILABLE_DICTIONARY, "available-dictionary")

#define FIELD(name, text) HTTP_FIELD_##name,
enum http_field { HTTP_FIELDS(FIELD) HTTP_FIELD_COUNT };
#undef FIELD

/* One parsed head. Zero it before the first call. */
struct http_request {
    uint32_t present;  /* bit 1 << HTTP_FIELD_X: the field is present */
    uint32_t repeated; /* the same, for fields with more than one line */
    uint16_t head_len; /* bytes of the head with its empty line; set with HTTP_PARSED */
    uint8_t method;    /* enum http_method */
    uint8_t minor;     /* HTTP/1.minor: 0, or 1 for later minors too */
    uint8_t fault;     /* enum http_fault; set with HTTP_PARSE_FAILED */
    struct http_slice method_text;
    struct http_slice target;
    struct http_slice line; /* the request line, without leading empty lines or CRLF */
    struct http_slice field[HTTP_FIELD_COUNT]; /* the first value of each, trimmed; len 0: absent */

    uint16_t next_line;  /* private: offset where the parser continues */
    uint16_t line_count; /* private: empty lines, then field lines */
};

enum http_parse {
    HTTP_PARSED,      /* the head is complete: `head_len` bytes */
    HTTP_PARSE_MORE,  /* a valid beginning: call again with more bytes */
    HTTP_PARSE_FAILED /* not a valid request: *ret_status says why */
};

/* Parses the head that begins at `bytes.at`. After HTTP_PARSE_MORE, call it again with the same
 * bytes and more behind them, at any address. Complete lines are not read twice. Bytes behind the
 * head are not read. A head in pieces gives the same result as the whole head at once.
 *
 * On HTTP_PARSE_FAILED, *ret_status is 400, 414, 431, 501 or 505. The caller must close the
 * connection after the answer, because the end of the request is unknown. Of several faults the
 * first by position counts. `line` then holds, for the log, the whole request line, or the line
 * up to and including the wrong byte. */
enum http_parse http_request_parse(struct http_request *request, struct span bytes,
                                   enum http_status *ret_status);

/* The target of a parsed head was replaced by another one that the parser would accept. The head
 * has `head_len` bytes now, at most HTTP_HEAD_MAX. */
void http_request_resize(struct http_request *request, size_t head_len);

/* The first value of a field; an empty span when it is absent. `head` is the address of the
 * head. The span is valid as long as those bytes. */
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

/* Every field line of a parsed head, in order, with the value trimmed. Set *cursor to 0 before the
 * first call. False at the end. */
bool http_request_next_line(const struct http_request *request, const char *head, size_t *cursor,
                            struct span *ret_name, struct span *ret_value);

/* Every value of a field that may have several lines. Set *cursor to 0 before the first call.
 * Each call gives the next line's value, trimmed; false at the end. Only for parsed heads. It
 * reads the head again, so http_request_field is faster. */
bool http_request_next_value(const struct http_request *request, const char *head,
                             enum http_field field, size_t *cursor, struct span *ret_value);

/* A list field that may have several lines, as one list (RFC 9110 section 5.3). Several lines
 * are joined in `storage`, as many as fit. A single line is lent in place. Empty when the field
 * is absent. */
struct span http_request_list(const struct http_request *request, const char *head,
                              enum http_field field, char *storage, size_t storage_size);

/* Whether the connection may carry another request after this one (RFC 9112 section 9.3).
 * HTTP/1.1: yes, unless `close`. HTTP/1.0: only with `keep-alive`. */
bool http_request_persists(const struct http_request *request, const char *head);
