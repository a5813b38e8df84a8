/* SPDX-License-Identifier: MIT
 *
 * The response head, line by line. A line is interpreted when it is complete. Until then only
 * its bytes are checked. So the split of the input makes no difference.
 */
#include "http/response.h"

#include "base/num.h"
#include "base/scan.h"
#include "http/list.h"
#include "http/token.h"

enum mark {
    MARK_STATUS_LINE = 1, /* the status line has been read */
    MARK_LENGTH = 2,
    MARK_CHUNKED = 4, /* the last coding is chunked */
    MARK_CODED = 8,   /* there is a Transfer-Encoding */
    MARK_CLOSE = 16,
    MARK_KEEP_ALIVE = 32
};

static enum http_parse fail_response(struct http_response *response, enum http_response_fault fault)
{
    response->fault = (uint8_t)fault;
    return HTTP_PARSE_FAILED;
}

/* Finds the end of the line that begins at `start`, and sets *ret_end to its CR. */
static enum http_parse find_line(struct http_response *response, struct span head, size_t start,
                                 size_t *ret_end)
{
    size_t end = start + scan_field_value_end(head.at + start, head.len - start);
    if (end == head.len)
        return HTTP_PARSE_MORE;
    if (head.at[end] != '\r')
        return fail_response(response, HTTP_RESPONSE_FORM);
    if (end + 1 == head.len)
        return HTTP_PARSE_MORE;
    if (head.at[end + 1] != '\n')
        return fail_response(response, HTTP_RESPONSE_FORM);
    *ret_end = end;
    return HTTP_PARSED;
}

static bool is_status_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1." DIGIT SP 3DIGIT [ SP reason ] (RFC 9112 section 4). Some servers leave out the space
 * behind the status when they send no reason. It means nothing. */
static bool take_status_line(struct http_response *response, struct span line)
{
    enum { MINOR_AT = 7, STATUS_AT = 9, STATUS_END = 12 };
    const char *at = line.at;
    if (line.len < STATUS_END || memcmp(at, "HTTP/1.", MINOR_AT) != 0 ||
        !is_status_digit(at[MINOR_AT]) || at[MINOR_AT + 1] != ' ')
        return false;
    for (size_t i = STATUS_AT; i < STATUS_END; i++)
        if (!is_status_digit(at[i]))
            return false;
    if (at[STATUS_AT] < '1' || at[STATUS_AT] > '5')
        return false;
    if (line.len > STATUS_END && at[STATUS_END] != ' ')
        return false;
    response->minor = at[MINOR_AT] > '0';
    response->status = (uint16_t)((at[STATUS_AT] - '0') * 100 + (at[STATUS_AT + 1] - '0') * 10 +
                                  (at[STATUS_AT + 2] - '0'));
    response->marks |= MARK_STATUS_LINE;
    return true;
}

static bool take_length(struct http_response *response, struct span value)
{
    uint64_t length;
    if (!num_parse_u64(value, &length))
        return false;
    bool differs = (response->marks & MARK_LENGTH) != 0 && length != response->length;
    response->length = length;
    response->marks |= MARK_LENGTH;
    return !differs;
}

/* chunked must be the last coding (RFC 9112 section 6.1), over all lines. */
static bool take_codings(struct http_response *response, struct span value)
{
    struct span coding;
    response->marks |= MARK_CODED;
    while (http_list_next(&value, &coding)) {
        if ((response->marks & MARK_CHUNKED) != 0)
            return false;
        if (span_equal_nocase(coding, SPAN("chunked")))
            response->marks |= MARK_CHUNKED;
    }
    return true;
}

static bool take_connection(struct http_response *response, struct span value)
{
    if (http_list_has(value, SPAN("close")))
        response->marks |= MARK_CLOSE;
    if (http_list_has(value, SPAN("keep-alive")))
        response->marks |= MARK_KEEP_ALIVE;
    return true;
}

/* Reads a field if it is about framing or persistence. */
static bool take_field(struct http_response *response, struct span name, struct span value)
{
    switch (name.len) {
    case 10:
        return !span_equal_nocase(name, SPAN("connection")) ||
               take_connection(response, span_trim(value));
    case 14:
        return !span_equal_nocase(name, SPAN("content-length")) ||
               take_length(response, span_trim(value));
    case 17:
        return !span_equal_nocase(name, SPAN("transfer-encoding")) ||
               take_codings(response, span_trim(value));
    default:
        return true;
    }
}

/* The length of the name at the front of a line; 0: no valid name. */
static size_t name_length(struct span line)
{
    size_t len = scan_plain_name_end(line.at, line.len);
    while (len < line.len && http_token_byte(line.at[len]))
        len++;
    return len < line.len && line.at[len] == ':' ? len : 0;
}

static enum http_parse parse_response_fields(struct http_response *response, struct span head)
{
    for (;;) {
        size_t start = response->next_line, end = start;
        enum http_parse result = find_line(response, head, start, &end);
        if (result != HTTP_PARSED)
            return result;
        response->next_line = (uint16_t)(end + 2);
        if (end == start)
            return HTTP_PARSED;
        struct span line = span_of(head.at + start, end - start);
        size_t name_len = name_length(line);
        if (name_len == 0)
            return fail_response(response, HTTP_RESPONSE_FORM);
        if (!take_field(response, span_first(line, name_len), span_skip(line, name_len + 1)))
            return fail_response(response, HTTP_RESPONSE_FRAMING);
    }
}

/* RFC 9112 section 6.3. */
static enum http_parse decide_framing(struct http_response *response, bool head_method)
{
    unsigned marks = response->marks;
    struct http_body *body = &response->body;
    *body = (struct http_body){ .kind = HTTP_BODY_NONE };
    response->head_len = response->next_line;
    bool coded = (marks & MARK_CODED) != 0;
    if (response->status == 101 || (coded && ((marks & MARK_LENGTH) != 0 || response->minor == 0)))
        return fail_response(response, HTTP_RESPONSE_FRAMING);
    bool none = head_method || response->status < 200 || response->status == 204 ||
                response->status == 304;
    if (none) {
        /* no body, whatever the fields say */
    } else if ((marks & MARK_CHUNKED) != 0) {
        http_body_begin_chunked(body);
    } else if ((marks & MARK_LENGTH) != 0) {
        body->kind = response->length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
        body->remaining = response->length;
    } else {
        body->kind = HTTP_BODY_CLOSE;
    }
    response->persists = body->kind != HTTP_BODY_CLOSE && (marks & MARK_CLOSE) == 0 &&
                         (response->minor > 0 || (marks & MARK_KEEP_ALIVE) != 0);
    return HTTP_PARSED;
}

enum http_parse http_response_parse(struct http_response *response, struct span bytes,
                                    bool head_method)
{
    struct span head = span_first(bytes, HTTP_RESPONSE_HEAD_MAX);
    enum http_parse result = HTTP_PARSED;

    if ((response->marks & MARK_STATUS_LINE) == 0) {
        /* Other protocols fail at their first bytes, without waiting for the end of a line. */
        static const char begins[] = "HTTP/1.";
        size_t known = head.len < sizeof(begins) - 1 ? head.len : sizeof(begins) - 1;
        if (known > 0 && memcmp(head.at, begins, known) != 0)
            return fail_response(response, HTTP_RESPONSE_FORM);
        size_t end = 0;
        result = find_line(response, head, 0, &end);
        if (result == HTTP_PARSED && !take_status_line(response, span_of(head.at, end)))
            return fail_response(response, HTTP_RESPONSE_FORM);
        response->next_line = (uint16_t)(end + 2);
    }
    if (result == HTTP_PARSED)
        result = parse_response_fields(response, head);
    if (result == HTTP_PARSE_MORE && head.len == HTTP_RESPONSE_HEAD_MAX)
        return fail_response(response, HTTP_RESPONSE_FORM);
    return result == HTTP_PARSED ? decide_framing(response, head_method) : result;
}
