/* SPDX-License-Identifier: MIT
 *
 * Body framing, and reading past a body. The chunk reader is a table of states and byte classes.
 * A pair that is not in the table is malformed. The data of a chunk is skipped by count, without
 * reading it.
 */
#include "http/body.h"

#include "base/num.h"
#include "http/list.h"
#include "http/token.h"

/* Each state is named after what has just been read. TRAILERS is also the beginning of each
 * trailer line. 0 means malformed, so the gaps of the table do too. */
enum chunk_state {
    CHUNK_BAD,
    CHUNK_BEGIN,     /* nothing of the size line */
    CHUNK_SIZE,      /* a digit of the size */
    CHUNK_SPACE,     /* white space before a ';' */
    CHUNK_SEMICOLON, /* ';', and any white space */
    CHUNK_NAME,      /* part of an extension's name */
    CHUNK_NAME_SPACE,
    CHUNK_EQUALS, /* '=', and any white space */
    CHUNK_TOKEN,  /* part of an extension's value */
    CHUNK_QUOTED,
    CHUNK_QUOTED_PAIR, /* a backslash in a quoted value */
    CHUNK_QUOTED_END,
    CHUNK_SIZE_CR,
    CHUNK_DATA,
    CHUNK_DATA_END,
    CHUNK_DATA_CR,
    CHUNK_TRAILERS,
    CHUNK_TRAILER_NAME,
    CHUNK_TRAILER_VALUE,
    CHUNK_TRAILER_CR,
    CHUNK_LAST_CR,
    CHUNK_DONE,
    CHUNK_STATE_COUNT
};

enum byte_class {
    BYTE_CONTROL, /* never allowed */
    BYTE_OTHER,   /* other text: delimiters, and bytes above DEL */
    BYTE_HEX,     /* token bytes that are also hexadecimal digits */
    BYTE_TOKEN,
    BYTE_SPACE, /* SP and HTAB */
    BYTE_CR,
    BYTE_LF,
    BYTE_SEMICOLON,
    BYTE_EQUALS,
    BYTE_QUOTE,
    BYTE_BACKSLASH,
    BYTE_COLON,
    BYTE_CLASS_COUNT
};

static enum byte_class classify(char c)
{
    switch (c) {
    case ' ':
    case '\t':
        return BYTE_SPACE;
    case '\r':
        return BYTE_CR;
    case '\n':
        return BYTE_LF;
    case ';':
        return BYTE_SEMICOLON;
    case '=':
        return BYTE_EQUALS;
    case '"':
        return BYTE_QUOTE;
    case '\\':
        return BYTE_BACKSLASH;
    case ':':
        return BYTE_COLON;
    default:
        break;
    }
    if (num_hex_digit(c) >= 0)
        return BYTE_HEX;
    if (http_token_byte(c))
        return BYTE_TOKEN;
    return (unsigned char)c < 0x20 || c == 0x7f ? BYTE_CONTROL : BYTE_OTHER;
}

/* The bytes that a quoted string may hold without a backslash, and those of a field value. */
#define ON_QUOTED_TEXT(state) \
    [BYTE_OTHER] = (state), [BYTE_HEX] = (state), [BYTE_TOKEN] = (state), [BYTE_SPACE] = (state), \
    [BYTE_SEMICOLON] = (state), [BYTE_EQUALS] = (state), [BYTE_COLON] = (state)
#define ON_TEXT(state)  ON_QUOTED_TEXT(state), [BYTE_QUOTE] = (state), [BYTE_BACKSLASH] = (state)
#define ON_TOKEN(state) [BYTE_HEX] = (state), [BYTE_TOKEN] = (state)

/* RFC 9112 section 7.1: chunk-size [ chunk-ext ] CRLF data CRLF ... trailers CRLF. White space
 * around ';' and '=' is bad whitespace, which a recipient must accept. Before the CR there is
 * none. */
static const uint8_t next_state[CHUNK_STATE_COUNT][BYTE_CLASS_COUNT] = {
    [CHUNK_BEGIN] = { [BYTE_HEX] = CHUNK_SIZE },
    [CHUNK_SIZE] = { [BYTE_HEX] = CHUNK_SIZE,
                     [BYTE_SPACE] = CHUNK_SPACE,
                     [BYTE_SEMICOLON] = CHUNK_SEMICOLON,
                     [BYTE_CR] = CHUNK_SIZE_CR },
    [CHUNK_SPACE] = { [BYTE_SPACE] = CHUNK_SPACE, [BYTE_SEMICOLON] = CHUNK_SEMICOLON },
    [CHUNK_SEMICOLON] = { [BYTE_SPACE] = CHUNK_SEMICOLON, ON_TOKEN(CHUNK_NAME) },
    [CHUNK_NAME] = { ON_TOKEN(CHUNK_NAME), [BYTE_SPACE] = CHUNK_NAME_SPACE,
                     [BYTE_EQUALS] = CHUNK_EQUALS, [BYTE_SEMICOLON] = CHUNK_SEMICOLON,
                     [BYTE_CR] = CHUNK_SIZE_CR },
    [CHUNK_NAME_SPACE] = { [BYTE_SPACE] = CHUNK_NAME_SPACE,
                           [BYTE_EQUALS] = CHUNK_EQUALS,
                           [BYTE_SEMICOLON] = CHUNK_SEMICOLON },
    [CHUNK_EQUALS] = { [BYTE_SPACE] = CHUNK_EQUALS,
                       ON_TOKEN(CHUNK_TOKEN),
                       [BYTE_QUOTE] = CHUNK_QUOTED },
    [CHUNK_TOKEN] = { ON_TOKEN(CHUNK_TOKEN), [BYTE_SPACE] = CHUNK_SPACE,
                      [BYTE_SEMICOLON] = CHUNK_SEMICOLON, [BYTE_CR] = CHUNK_SIZE_CR },
    [CHUNK_QUOTED] = { ON_QUOTED_TEXT(CHUNK_QUOTED), [BYTE_QUOTE] = CHUNK_QUOTED_END,
                       [BYTE_BACKSLASH] = CHUNK_QUOTED_PAIR },
    [CHUNK_QUOTED_PAIR] = { ON_TEXT(CHUNK_QUOTED) },
    [CHUNK_QUOTED_END] = { [BYTE_SPACE] = CHUNK_SPACE,
                           [BYTE_SEMICOLON] = CHUNK_SEMICOLON,
                           [BYTE_CR] = CHUNK_SIZE_CR },
    [CHUNK_SIZE_CR] = { [BYTE_LF] = CHUNK_DATA },
    [CHUNK_DATA_END] = { [BYTE_CR] = CHUNK_DATA_CR },
    [CHUNK_DATA_CR] = { [BYTE_LF] = CHUNK_BEGIN },
    [CHUNK_TRAILERS] = { ON_TOKEN(CHUNK_TRAILER_NAME), [BYTE_CR] = CHUNK_LAST_CR },
    [CHUNK_TRAILER_NAME] = { ON_TOKEN(CHUNK_TRAILER_NAME), [BYTE_COLON] = CHUNK_TRAILER_VALUE },
    [CHUNK_TRAILER_VALUE] = { ON_TEXT(CHUNK_TRAILER_VALUE), [BYTE_CR] = CHUNK_TRAILER_CR },
    [CHUNK_TRAILER_CR] = { [BYTE_LF] = CHUNK_TRAILERS },
    [CHUNK_LAST_CR] = { [BYTE_LF] = CHUNK_DONE },
};

/* Checks every Transfer-Encoding line. Only a single `chunked` is accepted. */
static enum http_fault check_codings(const struct http_request *request, const char *head)
{
    bool chunked = false, unknown = false;
    struct span value, coding;
    size_t cursor = 0;

    while (http_request_next_value(request, head, HTTP_FIELD_TRANSFER_ENCODING, &cursor, &value)) {
        while (http_list_next(&value, &coding)) {
            size_t name_len = 0;
            while (name_len < coding.len && coding.at[name_len] != ';')
                name_len++;
            struct span name = span_trim(span_first(coding, name_len));
            if (chunked || !http_token_valid(name))
                return HTTP_FAULT_CODING_FORM; /* chunked must be last, and only once */
            if (!span_equal_nocase(name, SPAN("chunked")))
                unknown = true;
            else if (name_len < coding.len)
                return HTTP_FAULT_CODING_FORM; /* chunked has no parameters */
            else
                chunked = true;
        }
    }
    if (unknown)
        return HTTP_FAULT_CODING;
    return chunked ? HTTP_FAULT_NONE : HTTP_FAULT_CODING_FORM;
}

static enum http_fault read_framing(struct http_body *ret_body, const struct http_request *request,
                                    const char *head)
{
    bool has_length = http_request_has(request, HTTP_FIELD_CONTENT_LENGTH);

    if (http_request_has(request, HTTP_FIELD_TRANSFER_ENCODING)) {
        if (has_length)
            return HTTP_FAULT_BODY_TWICE;
        if (request->minor == 0)
            return HTTP_FAULT_CODING_IN_1_0;
        enum http_fault fault = check_codings(request, head);
        if (fault == HTTP_FAULT_NONE)
            *ret_body = (struct http_body){ .kind = HTTP_BODY_CHUNKED, .state = CHUNK_BEGIN };
        return fault;
    }
    uint64_t length = 0;
    if (has_length) {
        struct span text = http_request_field(request, head, HTTP_FIELD_CONTENT_LENGTH);
        if (http_request_repeats(request, HTTP_FIELD_CONTENT_LENGTH) ||
            !num_parse_u64(text, &length))
            return HTTP_FAULT_LENGTH_FORM;
        if (length > HTTP_BODY_MAX)
            return HTTP_FAULT_BODY_LENGTH;
    }
    *ret_body = (struct http_body){ .kind = length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE,
                                    .remaining = length };
    return HTTP_FAULT_NONE;
}

int http_body_begin(struct http_body *ret_body, const struct http_request *request,
                    const char *head)
{
    enum http_fault fault = read_framing(ret_body, request, head);
    ret_body->fault = (uint8_t)fault;
    return http_fault_status(fault);
}

/* Skips data bytes, and returns how many. */
static size_t skip_data(struct http_body *body, size_t available)
{
    size_t count = body->remaining < available ? (size_t)body->remaining : available;

    body->remaining -= count;
    body->total += count;
    return count;
}

/* The most bytes that a body may have. A size below this bound can be shifted left by a digit
 * without overflow. */
static uint64_t body_limit(const struct http_body *body)
{
    return body->unbounded ? UINT64_C(1) << 59 : HTTP_BODY_MAX;
}

/* Reads one byte of framing. Returns 0, or the status of the refusal. */
static int take_framing(struct http_body *body, char c)
{
    uint8_t state = next_state[body->state][classify(c)];
    size_t line_max = state >= CHUNK_TRAILERS ? HTTP_TRAILERS_MAX : HTTP_CHUNK_LINE_MAX;

    if (state == CHUNK_BAD || ++body->line_size > line_max)
        return HTTP_BAD_REQUEST;
    if (state == CHUNK_SIZE) {
        body->remaining = body->remaining << 4 | (uint64_t)num_hex_digit(c);
        if (body->remaining > body_limit(body) - body->total)
            return HTTP_CONTENT_TOO_LARGE;
    }
    if (state == CHUNK_DATA) { /* the size line has ended */
        if (body->remaining == 0)
            state = CHUNK_TRAILERS;
        body->line_size = 0;
    }
    if (state == CHUNK_BEGIN)
        body->line_size = 0;
    body->state = state;
    return 0;
}

void http_body_begin_chunked(struct http_body *ret_body)
{
    *ret_body =
        (struct http_body){ .kind = HTTP_BODY_CHUNKED, .state = CHUNK_BEGIN, .unbounded = true };
}

static enum http_body_step read_chunked(struct http_body *body, struct span bytes,
                                        size_t *ret_consumed, struct span *ret_data,
                                        enum http_status *ret_status)
{
    size_t pos = 0;

    while (pos < bytes.len && body->state != CHUNK_DATA && body->state != CHUNK_DONE) {
        int status = take_framing(body, bytes.at[pos++]);
        if (status != 0) {
            *ret_status = (enum http_status)status;
            return HTTP_BODY_FAILED;
        }
    }
    size_t count = body->state == CHUNK_DATA ? skip_data(body, bytes.len - pos) : 0;
    *ret_data = span_of(bytes.at + pos, count);
    *ret_consumed = pos + count;
    if (body->state == CHUNK_DATA && body->remaining == 0)
        body->state = CHUNK_DATA_END;
    return body->state == CHUNK_DONE ? HTTP_BODY_DONE : HTTP_BODY_MORE;
}

enum http_body_step http_body_read(struct http_body *body, struct span bytes, size_t *ret_consumed,
                                   struct span *ret_data, enum http_status *ret_status)
{
    if (body->kind == HTTP_BODY_CHUNKED)
        return read_chunked(body, bytes, ret_consumed, ret_data, ret_status);
    if (body->kind == HTTP_BODY_CLOSE) {
        body->total += bytes.len;
        *ret_data = bytes;
        *ret_consumed = bytes.len;
        return HTTP_BODY_MORE;
    }
    *ret_consumed = skip_data(body, bytes.len);
    *ret_data = span_first(bytes, *ret_consumed);
    return body->remaining == 0 ? HTTP_BODY_DONE : HTTP_BODY_MORE;
}

enum http_body_step http_body_discard(struct http_body *body, struct span bytes,
                                      size_t *ret_consumed, enum http_status *ret_status)
{
    enum http_body_step step;
    size_t pos = 0, consumed = 0;
    struct span data;

    do {
        step = http_body_read(body, span_skip(bytes, pos), &consumed, &data, ret_status);
        pos += step == HTTP_BODY_FAILED ? 0 : consumed;
    } while (step == HTTP_BODY_MORE && pos < bytes.len);
    if (step != HTTP_BODY_FAILED)
        *ret_consumed = pos;
    return step;
}
