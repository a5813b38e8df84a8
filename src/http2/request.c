/* SPDX-License-Identifier: MIT
 *
 * The path is copied to its place as soon as it is read. The method goes in front of it when the
 * pseudo-header fields are complete, and everything else behind it.
 */
#include "http2/request.h"

#include "base/num.h"
#include "base/scan.h"
#include "http/token.h"

enum {
    /* Places in the storage. Each part has some bytes to spare. */
    PART = HTTP2_HPACK_TEXT_MAX + 128,
    PATH_AT = HTTP_METHOD_MAX + 2, /* the text begins before it, with the method */
    AUTHORITY_AT = PART,           /* until the request line is written */
    NAME_AT = 2 * PART,
    VALUE_AT = 3 * PART,

    /* A longer method is cut behind this byte, so that the parser finds it too long. */
    METHOD_CUT = HTTP_METHOD_MAX + 1,

    FIELD_OVERHEAD = 32, /* RFC 9113 section 6.5.2 */
};

/* What is done with a field. */
enum use {
    USE_DROP,
    USE_WRITE, /* http/request.h reads it */
    USE_FORBIDDEN,
    USE_HOST,
    USE_LENGTH,
    USE_TE,
    USE_PRIORITY,
    USE_FETCH_MODE,
    USE_METHOD, /* from here on pseudo-header fields */
    USE_SCHEME,
    USE_AUTHORITY,
    USE_PATH
};

#define WRITTEN(USED) \
    USED(ACCEPT) \
    USED(ACCEPT_ENCODING) \
    USED(AUTHORIZATION) \
    USED(AVAILABLE_DICTIONARY) \
    USED(CACHE_CONTROL) \
    USED(EXPECT) \
    USED(FORWARDED) \
    USED(IF_MATCH) \
    USED(IF_MODIFIED_SINCE) \
    USED(IF_NONE_MATCH) \
    USED(IF_RANGE) \
    USED(IF_UNMODIFIED_SINCE) \
    USED(LAST_EVENT_ID) \
    USED(ORIGIN) \
    USED(RANGE) \
    USED(REFERER) \
    USED(TRACEPARENT) \
    USED(USER_AGENT) \
    USED(X_FORWARDED_FOR) \
    USED(X_FORWARDED_PROTO)

static const uint8_t uses[HTTP2_NAME_COUNT] = {
#define USED(name) [HTTP2_NAME_##name] = USE_WRITE,
    WRITTEN(USED)
#undef USED
        [HTTP2_NAME_METHOD] = USE_METHOD,
    [HTTP2_NAME_SCHEME] = USE_SCHEME,
    [HTTP2_NAME_AUTHORITY] = USE_AUTHORITY,
    [HTTP2_NAME_PATH] = USE_PATH,
    [HTTP2_NAME_STATUS] = USE_FORBIDDEN,
    [HTTP2_NAME_CONNECTION] = USE_FORBIDDEN,
    [HTTP2_NAME_KEEP_ALIVE] = USE_FORBIDDEN,
    [HTTP2_NAME_PROXY_CONNECTION] = USE_FORBIDDEN,
    [HTTP2_NAME_TRANSFER_ENCODING] = USE_FORBIDDEN,
    [HTTP2_NAME_UPGRADE] = USE_FORBIDDEN,
    [HTTP2_NAME_HOST] = USE_HOST,
    [HTTP2_NAME_CONTENT_LENGTH] = USE_LENGTH,
    [HTTP2_NAME_TE] = USE_TE,
    [HTTP2_NAME_PRIORITY] = USE_PRIORITY,
    [HTTP2_NAME_SEC_FETCH_MODE] = USE_FETCH_MODE,
};

const bool http2_request_keeps[HTTP2_NAME_COUNT] = {
#define USED(name) [HTTP2_NAME_##name] = true,
    WRITTEN(USED)
#undef USED
        [HTTP2_NAME_METHOD] = true,
    [HTTP2_NAME_SCHEME] = true,
    [HTTP2_NAME_AUTHORITY] = true,
    [HTTP2_NAME_PATH] = true,
    [HTTP2_NAME_HOST] = true,
    [HTTP2_NAME_CONTENT_LENGTH] = true,
    [HTTP2_NAME_TE] = true,
    [HTTP2_NAME_PRIORITY] = true,
    [HTTP2_NAME_SEC_FETCH_MODE] = true,
};

/* `name: ` of a written field, in a copy of fixed length. */
struct line_start {
    char text[31];
    uint8_t len;
};

#define NAME(name, text, index) { text ": ", sizeof(text ": ") - 1 },
static const struct line_start line_starts[HTTP2_NAME_COUNT] = {
    { "", 0 },
#include "http2/names.def"
};
#undef NAME

/* Copies a short text. It reads and writes no byte outside of it. */
static inline void copy_text(char *to, const char *from, size_t len)
{
    if (len >= 16) {
        for (size_t i = 0; i < len - 16; i += 16)
            memcpy(to + i, from + i, 16);
        memcpy(to + len - 16, from + len - 16, 16);
    } else if (len >= 8) {
        memcpy(to, from, 8);
        memcpy(to + len - 8, from + len - 8, 8);
    } else {
        for (size_t i = 0; i < len; i++)
            to[i] = from[i];
    }
}

/* In `seen`: no pseudo-header field may follow. Other names are not noted there. */
#define PSEUDO_END HTTP2_NAME_BIT(OTHER)
_Static_assert(HTTP2_NAME_HOST < 64 && HTTP2_NAME_STATUS < 64, "a set has the names that count");

static inline bool has_seen(const struct http2_request *request, uint64_t bits)
{
    return (request->seen & bits) != 0;
}

void http2_request_begin(struct http2_request *request, struct http2_table *table,
                         struct span block, char *storage, bool trailers)
{
    memset(request, 0, offsetof(struct http2_request, reader));
    request->content_length = HTTP2_REQUEST_NO_LENGTH;
    request->block = block;
    request->bytes_left = HTTP2_HEADER_LIST_MAX;
    request->fields_left = HTTP2_FIELDS_MAX;
    request->storage = storage;
    request->trailers = trailers;
    request->seen = trailers ? PSEUDO_END : 0;
    /* A decoded path is in its place at once. */
    if (!http2_hpack_begin(&request->reader, table, block, storage + NAME_AT,
                           storage + (trailers ? VALUE_AT : PATH_AT)))
        request->result = HTTP2_REQUEST_BROKEN;
}

/* ---- pseudo-header fields ---- */

static inline struct span method_of(const struct http2_request *request)
{
    return span_of(request->storage + PATH_AT - 1 - request->method_len, request->method_len);
}

static bool take_method(struct http2_request *request, struct span value)
{
    if (value.len == 3 && memcmp(value.at, "GET", 3) == 0) {
        request->method_len = 3;
        memcpy(request->storage + PATH_AT - 4, "GET ", 4);
        return true;
    }
    if (!http_token_valid(value))
        return false;
    value = span_first(value, METHOD_CUT);
    request->method_len = (uint8_t)value.len;
    copy_text(request->storage + PATH_AT - 1 - value.len, value.at, value.len);
    request->storage[PATH_AT - 1] = ' ';
    return true;
}

/* RFC 3986 section 3.1. */
static bool is_scheme(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = ascii_lower(text.at[i]);
        bool letter = c >= 'a' && c <= 'z';
        bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (!letter && (!other || i == 0))
            return false;
    }
    return text.len > 0;
}

static bool take_scheme(struct http2_request *request, struct span value)
{
    if (span_equal(value, SPAN("https")) || span_equal_nocase(value, SPAN("https")))
        request->scheme = HTTP2_SCHEME_HTTPS;
    else if (span_equal(value, SPAN("http")) || span_equal_nocase(value, SPAN("http")))
        request->scheme = HTTP2_SCHEME_HTTP;
    else
        request->scheme = HTTP2_SCHEME_OTHER;
    return request->scheme != HTTP2_SCHEME_OTHER || is_scheme(value);
}

/* The parser checks the form, as it does for Host. */
static bool take_authority(struct http2_request *request, struct span value)
{
    if (value.len == 0 || value.len > HTTP2_AUTHORITY_MAX)
        return false;
    request->authority_len = (uint32_t)value.len;
    copy_text(request->storage + AUTHORITY_AT, value.at, value.len);
    return true;
}

/* The form of a path depends on the method, so check_path checks it. */
static inline bool take_path(struct http2_request *request, struct span value)
{
    char *path = request->storage + PATH_AT;

    if (value.at != path)
        copy_text(path, value.at, value.len);
    request->path_len = (uint32_t)value.len;
    request->reader.value_storage = request->storage + VALUE_AT;
    return scan_target_end(path, value.len) == value.len;
}

/* A path begins with a slash, or is the asterisk of OPTIONS (RFC 9113 section 8.3.1). */
static bool check_path(const struct http2_request *request)
{
    const char *path = request->storage + PATH_AT;

    if (request->path_len == 0)
        return false;
    return path[0] == '/' || (request->path_len == 1 && path[0] == '*' &&
                              span_equal(method_of(request), SPAN("OPTIONS")));
}

/* Checks that the request has the pseudo-header fields of its method. The target of CONNECT is its
 * authority (RFC 9113 section 8.5). */
static inline bool check_pseudo(struct http2_request *request)
{
    const uint64_t method = HTTP2_NAME_BIT(METHOD), authority = HTTP2_NAME_BIT(AUTHORITY),
                   target = HTTP2_NAME_BIT(SCHEME) | HTTP2_NAME_BIT(PATH);

    bool connects = request->method_len == 7 && span_equal(method_of(request), SPAN("CONNECT"));
    if (!connects)
        return (request->seen & (method | target)) == (method | target) && check_path(request);
    return has_seen(request, authority) && !has_seen(request, target) &&
           take_path(request, span_of(request->storage + AUTHORITY_AT, request->authority_len));
}

/* ---- the text ---- */

static inline void end_line(struct http2_request *request)
{
    memcpy(request->storage + request->text_end, "\r\n", 2);
    request->text_end += 2;
}

static inline bool write_line(struct http2_request *request, enum http2_name name,
                              struct span value)
{
    const struct line_start *start = &line_starts[name];
    char *to = request->storage + request->text_end;

    memcpy(to, start->text, sizeof(start->text));
    copy_text(to + start->len, value.at, value.len);
    request->text_end += start->len + (uint32_t)value.len;
    end_line(request);
    return true;
}

/* Writes the request line, and Host when there is an authority. */
static bool write_request_line(struct http2_request *request)
{
    static const char version[] = " HTTP/1.1\r\n";

    if (!check_pseudo(request))
        return false;
    request->text_end = PATH_AT + request->path_len;
    memcpy(request->storage + request->text_end, version, sizeof(version) - 1);
    request->text_end += sizeof(version) - 1;
    if (request->authority_len > 0)
        return write_line(request, HTTP2_NAME_HOST,
                          span_of(request->storage + AUTHORITY_AT, request->authority_len));
    return true;
}

/* ---- other fields ---- */

/* Host and :authority must be the same (RFC 9113 section 8.3.1). Then Host is written already. */
static bool take_host(struct http2_request *request, struct span value)
{
    if (has_seen(request, HTTP2_NAME_BIT(HOST)))
        return false;
    request->seen |= HTTP2_NAME_BIT(HOST);
    if (request->authority_len == 0) {
        return write_line(request, HTTP2_NAME_HOST, value);
    }
    return span_equal_nocase(value,
                             span_of(request->storage + AUTHORITY_AT, request->authority_len));
}

static bool take_length(struct http2_request *request, struct span value)
{
    if (request->content_length != HTTP2_REQUEST_NO_LENGTH)
        return false;
    if (!num_parse_u64(value, &request->content_length))
        return false;
    if (request->content_length == HTTP2_REQUEST_NO_LENGTH)
        request->content_length--; /* also above every limit, so 413 as in HTTP/1.1 */
    return true;
}

static inline void take_priority(struct http2_request *request, struct span value)
{
    (void)write_line(request, HTTP2_NAME_PRIORITY, value);
    request->priority = span_of(request->storage + request->text_end - 2 - value.len, value.len);
}

/* Takes a field that is neither a pseudo-header field nor written as it is. */
static __attribute__((noinline)) bool take_other(struct http2_request *request,
                                                 enum http2_name name, struct span value)
{
    unsigned use = uses[name];

    if (request->trailers && use != USE_FORBIDDEN && use != USE_TE)
        return true;
    switch (use) {
    case USE_HOST:
        return take_host(request, value);
    case USE_LENGTH:
        return take_length(request, value);
    case USE_TE:
        /* RFC 9113 section 8.2.2 */
        return span_equal_nocase(value, SPAN("trailers"));
    case USE_PRIORITY:
        take_priority(request, value);
        return true;
    case USE_FETCH_MODE:
        request->navigates = value.at && span_equal(value, SPAN("navigate"));
        return true;
    default:
        return use == USE_DROP;
    }
}

/* ---- the block ---- */

/* The field that begins at `at` and was read last is :path. */
static inline void note_path(struct http2_request *request, const unsigned char *at)
{
    const unsigned char *block = (const unsigned char *)request->block.at;

    request->path_at = (uint32_t)(at - block);
    request->path_end = (uint32_t)(request->reader.at - block);
}

/* Takes a field of known form, which begins at `at`. Pseudo-header fields come before other fields,
 * once each, and never in trailers (RFC 9113 section 8.3). */
static inline __attribute__((always_inline)) bool take_field(struct http2_request *request,
                                                             enum http2_name name,
                                                             struct span value,
                                                             const unsigned char *at)
{
    unsigned use = uses[name];

    if (use >= USE_METHOD) {
        uint64_t bit = UINT64_C(1) << name;
        if (has_seen(request, bit | PSEUDO_END) || !value.at)
            return false;
        request->seen |= bit;
        if (use == USE_PATH)
            note_path(request, at);
        return use == USE_PATH        ? take_path(request, value)
               : use == USE_AUTHORITY ? take_authority(request, value)
               : use == USE_METHOD    ? take_method(request, value)
                                      : take_scheme(request, value);
    }
    if (!has_seen(request, PSEUDO_END)) {
        if (!write_request_line(request))
            return false;
        request->seen |= PSEUDO_END;
    }
    if (use == USE_WRITE && !request->trailers)
        return write_line(request, name, value);
    return use == USE_DROP || take_other(request, name, value);
}

/* Completes the text after the last field. */
static inline void end_request(struct http2_request *request)
{
    bool line = has_seen(request, PSEUDO_END) || write_request_line(request);

    if (!line && request->result == HTTP2_REQUEST_DECODED)
        request->result = HTTP2_REQUEST_MALFORMED;
    if (request->text_end == 0 || request->result == HTTP2_REQUEST_MALFORMED) {
        request->priority = span_of("", 0);
        return;
    }
    end_line(request);
    size_t begin = (size_t)PATH_AT - 1 - request->method_len;
    request->text = span_of(request->storage + begin, request->text_end - begin);
}

enum http2_request_result http2_request_decode(struct http2_request *request)
{
    uint32_t bytes_left = request->bytes_left, fields_left = request->fields_left;
    enum http2_request_result result = (enum http2_request_result)request->result;
    struct http2_field field;
    enum http2_hpack step;

    if (result == HTTP2_REQUEST_BROKEN)
        return result;
    for (;;) {
        const unsigned char *at = request->reader.at;
        step = http2_hpack_next(&request->reader, &field);
        if (step != HTTP2_HPACK_FIELD)
            break;
        size_t size = field.name.len + field.value.len + FIELD_OVERHEAD;
        if (__builtin_expect(result != HTTP2_REQUEST_DECODED, 0))
            continue; /* for the table only */
        if (size > bytes_left || fields_left == 0) {
            result = HTTP2_REQUEST_TOO_LARGE;
            continue;
        }
        bytes_left -= (uint32_t)size;
        fields_left--;
        if (!field.valid || !take_field(request, (enum http2_name)field.id, field.value, at))
            result = HTTP2_REQUEST_MALFORMED;
    }
    request->bytes_left = bytes_left;
    request->fields_left = fields_left;
    request->result = (uint8_t)result;
    if (step != HTTP2_HPACK_END)
        return step == HTTP2_HPACK_GROW ? HTTP2_REQUEST_GROW : HTTP2_REQUEST_BROKEN;
    end_request(request);
    return (enum http2_request_result)request->result;
}
