/* SPDX-License-Identifier: MIT
 *
 * The request head, read in one pass from the left. Every decision is made at the first byte
 * that determines it, except that the version is judged at the end of its line. So of several
 * faults the first by position is reported, and the split of the input makes no difference. An
 * incomplete line is read again from its start when more bytes have arrived. Lines, names and
 * targets are bounded, so this stays cheap.
 */
#include "http/request.h"

#include "base/buf.h"
#include "base/scan.h"
#include "http/list.h"
#include "http/token.h"

static enum http_parse fail_request(struct http_request *request, enum http_fault fault,
                                    enum http_status *ret_status)
{
    request->fault = (uint8_t)fault;
    *ret_status = (enum http_status)http_fault_status(fault);
    return HTTP_PARSE_FAILED;
}

/* Fails inside the request line. `end` is the position after the wrong byte. */
static enum http_parse fail_request_line(struct http_request *request, size_t end,
                                         enum http_fault fault, enum http_status *ret_status)
{
    size_t start = request->next_line;

    request->line = (struct http_slice){ (uint16_t)start, (uint16_t)(end - start) };
    return fail_request(request, fault, ret_status);
}

/* Methods that IANA lists or soon will, and that are not served here. */
static bool method_is_known(struct span method)
{
    static const char *const known[] = {
        "POST",           "PUT",        "DELETE",     "PATCH",         "CONNECT",
        "TRACE",          "PROPFIND",   "PROPPATCH",  "MKCOL",         "COPY",
        "MOVE",           "LOCK",       "UNLOCK",     "ACL",           "BASELINE-CONTROL",
        "BIND",           "CHECKIN",    "CHECKOUT",   "LABEL",         "LINK",
        "MERGE",          "MKACTIVITY", "MKCALENDAR", "MKREDIRECTREF", "MKWORKSPACE",
        "ORDERPATCH",     "QUERY",      "REBIND",     "REPORT",        "SEARCH",
        "UNBIND",         "UNCHECKOUT", "UNLINK",     "UPDATE",        "UPDATEREDIRECTREF",
        "VERSION-CONTROL"
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_equal(method, span_text(known[i])))
            return true;
    return false;
}

static enum http_method method_named(struct span method)
{
    if (span_equal(method, SPAN("GET")))
        return HTTP_GET;
    if (span_equal(method, SPAN("HEAD")))
        return HTTP_HEAD;
    if (span_equal(method, SPAN("OPTIONS")))
        return HTTP_OPTIONS;
    return method_is_known(method) ? HTTP_METHOD_KNOWN : HTTP_METHOD_UNKNOWN;
}

/* Skips empty lines before the request line (RFC 9112 section 2.2). */
static enum http_parse skip_empty_lines(struct http_request *request, struct span head,
                                        enum http_status *ret_status)
{
    for (size_t pos = request->next_line;; pos += 2) {
        request->next_line = (uint16_t)pos;
        if (pos == head.len)
            return HTTP_PARSE_MORE;
        if (head.at[pos] != '\r')
            return HTTP_PARSED;
        if (request->line_count == HTTP_LEADING_EMPTY_LINES_MAX)
            return fail_request_line(request, pos + 1, HTTP_FAULT_LINES_BEFORE, ret_status);
        if (pos + 1 == head.len)
            return HTTP_PARSE_MORE;
        if (head.at[pos + 1] != '\n')
            return fail_request_line(request, pos + 2, HTTP_FAULT_METHOD, ret_status);
        request->line_count++;
    }
}

/* The first byte of a TLS connection: the content type of a handshake (RFC 8446 section 5.1). */
enum { TLS_HANDSHAKE = 22 };

/* Reads the method and the space behind it. */
static enum http_parse parse_method(struct http_request *request, struct span head, size_t *pos,
                                    enum http_status *ret_status)
{
    size_t start = *pos;
    struct span window = span_first(span_skip(head, start), HTTP_METHOD_MAX + 1);
    size_t len = 0;

    if (window.len >= 4 && memcmp(window.at, "GET ", 4) == 0) {
        request->method = HTTP_GET;
        len = 3;
    } else {
        while (len < window.len && http_token_byte(window.at[len]))
            len++;
        if (len > HTTP_METHOD_MAX)
            return fail_request_line(request, start + len, HTTP_FAULT_METHOD_LENGTH, ret_status);
        if (len == window.len)
            return HTTP_PARSE_MORE;
        if (len == 0 || window.at[len] != ' ')
            return fail_request_line(request, start + len + 1,
                                     window.at[0] == TLS_HANDSHAKE ? HTTP_FAULT_TLS_RECORD
                                                                   : HTTP_FAULT_METHOD,
                                     ret_status);
        request->method = (uint8_t)method_named(span_first(window, len));
    }
    request->method_text = (struct http_slice){ (uint16_t)start, (uint16_t)len };
    *pos = start + len + 1;
    return HTTP_PARSED;
}

/* Reads the target and the space behind it. */
static enum http_parse parse_target(struct http_request *request, struct span head, size_t *pos,
                                    enum http_status *ret_status)
{
    size_t start = *pos;
    size_t len = scan_target_end(head.at + start, head.len - start);

    if (len > HTTP_TARGET_MAX)
        return fail_request_line(request, start + HTTP_TARGET_MAX + 1, HTTP_FAULT_TARGET_LENGTH,
                                 ret_status);
    if (start + len == head.len)
        return HTTP_PARSE_MORE;
    if (len == 0 || head.at[start + len] != ' ')
        return fail_request_line(request, start + len + 1, HTTP_FAULT_TARGET_BYTES, ret_status);
    request->target = (struct http_slice){ (uint16_t)start, (uint16_t)len };
    *pos = start + len + 1;
    return HTTP_PARSED;
}

/* Reads the version and the end of the line (RFC 9112 section 2.3). */
static enum http_parse parse_version(struct http_request *request, struct span head, size_t *pos,
                                     enum http_status *ret_status)
{
    static const char form[] = "HTTP/0.0\r\n"; /* '0' stands for any digit */
    enum { FORM_LEN = sizeof(form) - 1, MAJOR_AT = 5, MINOR_AT = 7, LINE_END_LEN = 2 };
    size_t start = *pos;
    const char *at = head.at + start;

    if (head.len - start >= FORM_LEN && memcmp(at, "HTTP/1.1\r\n", FORM_LEN) == 0) {
        request->minor = 1;
        *pos = start + FORM_LEN;
        return HTTP_PARSED;
    }
    for (size_t i = 0; i < FORM_LEN; i++) {
        if (start + i == head.len)
            return HTTP_PARSE_MORE;
        bool fits = form[i] == '0' ? at[i] >= '0' && at[i] <= '9' : at[i] == form[i];
        if (!fits)
            return fail_request_line(request, start + i + 1, HTTP_FAULT_VERSION_FORM, ret_status);
    }
    if (at[MAJOR_AT] != '1')
        return fail_request_line(request, start + FORM_LEN - LINE_END_LEN, HTTP_FAULT_VERSION,
                                 ret_status);
    request->minor = at[MINOR_AT] > '0';
    *pos = start + FORM_LEN;
    return HTTP_PARSED;
}

static enum http_parse parse_request_line(struct http_request *request, struct span head,
                                          enum http_status *ret_status)
{
    enum http_parse result = skip_empty_lines(request, head, ret_status);
    size_t pos = request->next_line;

    if (result == HTTP_PARSED)
        result = parse_method(request, head, &pos, ret_status);
    if (result == HTTP_PARSED)
        result = parse_target(request, head, &pos, ret_status);
    if (result == HTTP_PARSED)
        result = parse_version(request, head, &pos, ret_status);
    if (result != HTTP_PARSED)
        return result;

    size_t start = request->next_line;
    request->line = (struct http_slice){ (uint16_t)start, (uint16_t)(pos - 2 - start) };
    request->next_line = (uint16_t)pos;
    request->line_count = 0;
    return HTTP_PARSED;
}

/* The only field whose name can have this length and these letters, or HTTP_FIELD_COUNT. A test
 * tries every name of HTTP_FIELDS. */
static inline enum http_field field_candidate(struct span name)
{
    char first = (char)(name.at[0] | 0x20);

    switch (name.len) {
    case 4:
        return HTTP_FIELD_HOST;
    case 5:
        return HTTP_FIELD_RANGE;
    case 6:
        if (first == 'o')
            return HTTP_FIELD_ORIGIN;
        return first == 'a' ? HTTP_FIELD_ACCEPT : HTTP_FIELD_EXPECT;
    case 7:
        return HTTP_FIELD_REFERER;
    case 8:
        return (name.at[3] | 0x20) == 'r' ? HTTP_FIELD_IF_RANGE : HTTP_FIELD_IF_MATCH;
    case 10:
        return first == 'c' ? HTTP_FIELD_CONNECTION : HTTP_FIELD_USER_AGENT;
    case 11:
        return HTTP_FIELD_TRACEPARENT;
    case 13:
        if (first == 'l')
            return HTTP_FIELD_LAST_EVENT_ID;
        if (first == 'c')
            return HTTP_FIELD_CACHE_CONTROL;
        return first == 'a' ? HTTP_FIELD_AUTHORIZATION : HTTP_FIELD_IF_NONE_MATCH;
    case 14:
        return HTTP_FIELD_CONTENT_LENGTH;
    case 15:
        return HTTP_FIELD_ACCEPT_ENCODING;
    case 17:
        return first == 't' ? HTTP_FIELD_TRANSFER_ENCODING : HTTP_FIELD_IF_MODIFIED_SINCE;
    case 19:
        return HTTP_FIELD_IF_UNMODIFIED_SINCE;
    case 20:
        return HTTP_FIELD_AVAILABLE_DICTIONARY;
    default:
        return HTTP_FIELD_COUNT;
    }
}

/* Loads bytes and sets bit 0x20 in each. Letters become lower case. Of all token bytes, only
 * letters give letters, and only '-' gives '-'. */
static inline uint64_t lower_8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word | 0x2020202020202020u;
}

static inline uint32_t lower_4(const char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return word | 0x20202020u;
}

/* The field of HTTP_FIELDS that a name (token bytes only) is, or HTTP_FIELD_COUNT. */
static inline enum http_field field_named(struct span name)
{
    static const struct span text[] = {
#define FIELD(enum_name, lower_text) { lower_text, sizeof(lower_text) - 1 },
        HTTP_FIELDS(FIELD)
#undef FIELD
    };
    enum http_field field = field_candidate(name);

    if (field == HTTP_FIELD_COUNT)
        return field;
    const char *want = text[field].at;
    size_t last = name.len - 8; /* used only for names of at least 8 bytes */
    bool same;
    if (name.len < 8)
        same = lower_4(name.at) == lower_4(want) &&
               lower_4(name.at + name.len - 4) == lower_4(want + name.len - 4);
    else
        same = lower_8(name.at) == lower_8(want) &&
               lower_8(name.at + last) == lower_8(want + last) &&
               (name.len <= 16 || lower_8(name.at + 8) == lower_8(want + 8));
    return same ? field : HTTP_FIELD_COUNT;
}

/* Keeps the value between `value` and `end` if the field is in HTTP_FIELDS. */
static inline void note_field(struct http_request *request, const char *head, struct span name,
                              size_t value, size_t end)
{
    enum http_field field = field_named(name);
    if (field == HTTP_FIELD_COUNT)
        return;

    uint32_t bit = 1u << field;
    if (request->present & bit) {
        request->repeated |= bit;
        return;
    }
    struct span text = span_trim(span_of(head + value, end - value));
    request->field[field] = (struct http_slice){ (uint16_t)(text.at - head), (uint16_t)text.len };
    request->present |= bit;
}

/* Reads the field line that begins at *pos, and moves *pos behind it. */
static inline enum http_parse parse_field(struct http_request *request, struct span head,
                                          size_t *pos, enum http_status *ret_status)
{
    const char *at = head.at;
    size_t start = *pos;
    size_t colon = start + scan_plain_name_end(at + start, head.len - start);

    while (colon < head.len && http_token_byte(at[colon]))
        colon++;
    if (colon - start > HTTP_FIELD_NAME_MAX)
        return fail_request(request, HTTP_FAULT_FIELD_NAME_LENGTH, ret_status);
    if (colon == head.len)
        return HTTP_PARSE_MORE;
    if (at[colon] != ':' || colon == start)
        return fail_request(request, HTTP_FAULT_FIELD_NAME, ret_status);

    size_t value = colon + 1;
    size_t end = value + scan_field_value_end(at + value, head.len - value);
    if (end == head.len)
        return HTTP_PARSE_MORE;
    if (at[end] != '\r')
        return fail_request(request, HTTP_FAULT_FIELD_VALUE, ret_status);
    if (end + 1 == head.len)
        return HTTP_PARSE_MORE;
    if (at[end + 1] != '\n')
        return fail_request(request, HTTP_FAULT_FIELD_VALUE, ret_status);

    note_field(request, at, span_of(at + start, colon - start), value, end);
    *pos = end + 2;
    return HTTP_PARSED;
}

static enum http_parse parse_request_fields(struct http_request *request, struct span head,
                                            enum http_status *ret_status)
{
    size_t pos = request->next_line;
    unsigned count = request->line_count;

    for (;;) {
        if (pos == head.len)
            return HTTP_PARSE_MORE;
        if (head.at[pos] == '\r') {
            if (pos + 1 == head.len)
                return HTTP_PARSE_MORE;
            if (head.at[pos + 1] != '\n')
                return fail_request(request, HTTP_FAULT_HEAD_END, ret_status);
            request->head_len = (uint16_t)(pos + 2);
            return HTTP_PARSED;
        }
        if (count == HTTP_FIELDS_MAX)
            return fail_request(request, HTTP_FAULT_FIELD_COUNT, ret_status);
        enum http_parse result = parse_field(request, head, &pos, ret_status);
        if (result != HTTP_PARSED)
            return result;
        request->next_line = (uint16_t)pos;
        request->line_count = (uint16_t)++count;
    }
}

enum http_parse http_request_parse(struct http_request *request, struct span bytes,
                                   enum http_status *ret_status)
{
    struct span head = span_first(bytes, HTTP_HEAD_MAX);
    enum http_parse result = HTTP_PARSED;

    if (request->line.len == 0)
        result = parse_request_line(request, head, ret_status);
    if (result == HTTP_PARSED)
        result = parse_request_fields(request, head, ret_status);
    if (result == HTTP_PARSE_MORE && head.len == HTTP_HEAD_MAX)
        return fail_request(request, HTTP_FAULT_HEAD_LENGTH, ret_status);
    return result;
}

void http_request_resize(struct http_request *request, size_t head_len)
{
    const uint16_t more = (uint16_t)(head_len - request->head_len); /* modulo 2^16 */

    request->head_len = (uint16_t)head_len;
    request->target.len = (uint16_t)(request->target.len + more);
    request->line.len = (uint16_t)(request->line.len + more);
    request->next_line = (uint16_t)(request->next_line + more);
    for (unsigned i = 0; i < HTTP_FIELD_COUNT; i++)
        if (request->field[i].at > 0)
            request->field[i].at = (uint16_t)(request->field[i].at + more);
}

bool http_request_next_line(const struct http_request *request, const char *head, size_t *cursor,
                            struct span *ret_name, struct span *ret_value)
{
    size_t fields_end = request->head_len - 2u; /* the position of the empty line */
    size_t pos = *cursor > 0 ? *cursor : request->line.at + request->line.len + 2u;

    if (pos >= fields_end)
        return false;
    struct span rest = span_of(head + pos, fields_end - pos);
    size_t colon = 0;
    while (rest.at[colon] != ':') /* a parsed line has one */
        colon++;
    struct span value = span_skip(rest, colon + 1);
    value = span_first(value, scan_field_value_end(value.at, value.len));
    *cursor = pos + colon + 1 + value.len + 2;
    *ret_name = span_first(rest, colon);
    *ret_value = span_trim(value);
    return true;
}

bool http_request_next_value(const struct http_request *request, const char *head,
                             enum http_field field, size_t *cursor, struct span *ret_value)
{
    struct span name;

    if (!http_request_has(request, field))
        return false;
    while (http_request_next_line(request, head, cursor, &name, ret_value))
        if (field_named(name) == field)
            return true;
    return false;
}

struct span http_request_list(const struct http_request *request, const char *head,
                              enum http_field field, char *storage, size_t storage_size)
{
    struct buf list = buf_over(storage, storage_size);
    struct span value;
    size_t cursor = 0;

    if (!http_request_repeats(request, field))
        return http_request_field(request, head, field);
    while (http_request_next_value(request, head, field, &cursor, &value)) {
        if (value.len + 2 > buf_room(&list))
            break;
        if (list.len > 0)
            buf_add(&list, SPAN(", "));
        buf_add(&list, value);
    }
    return buf_span(&list);
}

bool http_request_persists(const struct http_request *request, const char *head)
{
    bool keep_alive = request->minor > 0;
    struct span value;
    size_t cursor = 0;

    if (!http_request_has(request, HTTP_FIELD_CONNECTION))
        return keep_alive;
    if (!http_request_repeats(request, HTTP_FIELD_CONNECTION) &&
        span_equal(http_request_field(request, head, HTTP_FIELD_CONNECTION), SPAN("keep-alive")))
        return true;
    while (http_request_next_value(request, head, HTTP_FIELD_CONNECTION, &cursor, &value)) {
        if (http_list_has(value, SPAN("close")))
            return false;
        if (http_list_has(value, SPAN("keep-alive")))
            keep_alive = true;
    }
    return keep_alive;
}
