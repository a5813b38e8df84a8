/* SPDX-License-Identifier: MIT
 *
 * libnghttp2's decoder of header blocks, and the rules for requests in their plainest form: what
 * src/http2/ is compared with. The program itself does not use libnghttp2.
 */
#pragma once

#include "base/buf.h"
#include "base/num.h"
#include "http2/repeat.h"
#include "support/hpack.h"
#include "support/parsed.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

enum { INFLATER_FIELDS_MAX = 70000, INFLATER_TEXT_MAX = 1024 * 1024 };

struct inflater_field {
    struct span name, value;
};

/* A decoder, and the fields of its last block. */
struct inflater {
    nghttp2_hd_inflater *hd;
    unsigned count;
    size_t text_len;
    struct inflater_field field[INFLATER_FIELDS_MAX];
    char text[INFLATER_TEXT_MAX];
};

static inline struct inflater *inflater_new(void)
{
    struct inflater *inflater = malloc(sizeof(*inflater));
    CHECK(inflater && nghttp2_hd_inflate_new(&inflater->hd) == 0);
    return inflater;
}

/* The same as a new one. The 3 MB of memory stay. */
static inline void inflater_restart(struct inflater *inflater)
{
    nghttp2_hd_inflate_del(inflater->hd);
    CHECK(nghttp2_hd_inflate_new(&inflater->hd) == 0);
}

static inline void inflater_free(struct inflater *inflater)
{
    nghttp2_hd_inflate_del(inflater->hd);
    free(inflater);
}

/* A copy. It has no bytes when the block has too many: a request is too large long before. */
static inline struct span inflater_keep(struct inflater *inflater, const uint8_t *at, size_t len)
{
    char *copy = inflater->text + inflater->text_len;
    if (len > INFLATER_TEXT_MAX - inflater->text_len)
        return span_of(NULL, len);
    memcpy(copy, at, len);
    inflater->text_len += len;
    return span_of(copy, len);
}

/* Decodes a whole block. False: it is broken. */
static inline bool inflater_read(struct inflater *inflater, struct span block)
{
    const uint8_t *at = (const uint8_t *)block.at;
    size_t left = block.len;
    int flags = 0;

    inflater->count = 0;
    inflater->text_len = 0;
    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater->hd, &nv, &flags, at, left, 1);
        if (used < 0)
            return false;
        at += used;
        left -= (size_t)used;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            CHECK(inflater->count < INFLATER_FIELDS_MAX);
            inflater->field[inflater->count++] = (struct inflater_field){
                inflater_keep(inflater, nv.name, nv.namelen),
                inflater_keep(inflater, nv.value, nv.valuelen),
            };
        }
    }
    CHECK(nghttp2_hd_inflate_end_headers(inflater->hd) == 0);
    return true;
}

static inline bool inflater_any(struct span text, const char *bytes, size_t count)
{
    for (size_t i = 0; i < text.len; i++)
        if (memchr(bytes, text.at[i], count))
            return true;
    return false;
}

/* RFC 9113 section 8.2.1, with the stricter form of RFC 9110 section 5.5. */
static inline bool inflater_valid(struct inflater_field field, bool known)
{
    static const char tokens[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
    for (size_t i = 0; i < field.name.len && !known; i++)
        if (!memchr(tokens, field.name.at[i], sizeof(tokens) - 1))
            return false;
    for (size_t i = 0; i < field.value.len; i++) {
        unsigned char c = (unsigned char)field.value.at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return field.name.len > 0 && span_equal(span_trim(field.value), field.value);
}

static inline bool inflater_is(struct inflater_field field, const char *name)
{
    return span_equal(field.name, span_text(name));
}

static inline bool inflater_listed(struct inflater_field field, const char *const names[])
{
    for (; *names; names++)
        if (inflater_is(field, *names))
            return true;
    return false;
}

/* The value of a pseudo-header field among the first `count`, or NULL. */
static inline const struct inflater_field *inflater_find(const struct inflater *inflater,
                                                         unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (inflater_is(inflater->field[i], name))
            return &inflater->field[i];
    return NULL;
}

/* Appends the request line and Host, when the first `count` fields have what the method needs. */
static inline bool inflater_line(const struct inflater *inflater, unsigned count, struct buf *text)
{
    const struct inflater_field *method = inflater_find(inflater, count, ":method"),
                                *scheme = inflater_find(inflater, count, ":scheme"),
                                *path = inflater_find(inflater, count, ":path"),
                                *authority = inflater_find(inflater, count, ":authority");
    if (!method)
        return false;
    if (span_equal(method->value, SPAN("CONNECT"))) {
        if (scheme || path || !authority || inflater_any(authority->value, " \t", 2))
            return false;
        path = authority;
    } else {
        bool asterisk = path && span_equal(path->value, SPAN("*")) &&
                        span_equal(method->value, SPAN("OPTIONS"));
        if (!scheme || !path || !(asterisk || span_starts(path->value, SPAN("/"))))
            return false;
    }
    buf_add(text, span_first(method->value, HTTP_METHOD_MAX + 1));
    buf_add(text, SPAN(" "));
    buf_add(text, path->value);
    buf_add(text, SPAN(" HTTP/1.1\r\n"));
    if (authority) {
        buf_add(text, SPAN("host: "));
        buf_add(text, authority->value);
        buf_add(text, SPAN("\r\n"));
    }
    return true;
}

/* Whether the form of a pseudo-header field is right. */
static inline bool inflater_pseudo(struct inflater_field field)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    struct span value = field.value;
    size_t good = 0;
    if (inflater_is(field, ":authority"))
        return value.len > 0 && value.len <= HTTP2_AUTHORITY_MAX;
    if (inflater_is(field, ":path"))
        return !inflater_any(value, " \t", 2);
    bool method = inflater_is(field, ":method");
    while (good < value.len && memchr(token, value.at[good], sizeof(token) - 1) &&
           (method || !memchr("!#$%&'*^_`|~", value.at[good], 12)))
        good++;
    return value.len > 0 && good == value.len &&
           (method || !memchr("0123456789+-.", value.at[0], 13));
}

/* Names whose fields are written into the request, NULL at the end. */
static const char *const inflater_written[] = { "accept",
                                                "accept-encoding",
                                                "authorization",
                                                "available-dictionary",
                                                "cache-control",
                                                "expect",
                                                "if-match",
                                                "if-none-match",
                                                "if-modified-since",
                                                "if-range",
                                                "priority",
                                                "range",
                                                "referer",
                                                "if-unmodified-since",
                                                "user-agent",
                                                "last-event-id",
                                                "origin",
                                                "forwarded",
                                                "traceparent",
                                                "x-forwarded-for",
                                                NULL };

/* What a request with the fields of the last block must become. Appends its text. */
static inline enum http2_request_result inflater_request(const struct inflater *inflater,
                                                         struct buf *text)
{
    static const char *const pseudo[] = { ":method", ":scheme", ":authority", ":path", NULL };
    static const char *const wrong[] = { ":status",    "connection", "proxy-connection",
                                         "keep-alive", "upgrade",    "transfer-encoding",
                                         NULL };
    size_t bytes = 0;
    bool regular = false, host = false, length = false;
    for (unsigned i = 0; i < inflater->count; i++) {
        struct inflater_field field = inflater->field[i];
        bytes += field.name.len + field.value.len + 32;
        if (i + 1 > HTTP2_FIELDS_MAX || bytes > HTTP2_HEADER_LIST_MAX)
            return HTTP2_REQUEST_TOO_LARGE;
        bool is_pseudo = inflater_listed(field, pseudo);
        if (!inflater_valid(field, is_pseudo) || inflater_listed(field, wrong))
            return HTTP2_REQUEST_MALFORMED;
        if (is_pseudo) {
            char name[16] = "";
            memcpy(name, field.name.at, field.name.len);
            if (regular || inflater_find(inflater, i, name) || !inflater_pseudo(field))
                return HTTP2_REQUEST_MALFORMED;
            continue;
        }
        if (!regular && !inflater_line(inflater, i, text))
            return HTTP2_REQUEST_MALFORMED;
        regular = true;
        const struct inflater_field *authority =
            inflater_find(inflater, inflater->count, ":authority");
        bool write = inflater_listed(field, inflater_written);
        if (inflater_is(field, "host")) {
            if (host || (authority && !span_equal_nocase(authority->value, field.value)))
                return HTTP2_REQUEST_MALFORMED;
            host = true;
            write = !authority;
        }
        if (inflater_is(field, "te") && !span_equal_nocase(field.value, SPAN("trailers")))
            return HTTP2_REQUEST_MALFORMED;
        if (inflater_is(field, "content-length")) {
            uint64_t number;
            if (length || !num_parse_u64(field.value, &number) || number == UINT64_MAX)
                return HTTP2_REQUEST_MALFORMED;
            length = true;
        }
        if (write) {
            buf_add(text, field.name);
            buf_add(text, SPAN(": "));
            buf_add(text, field.value);
            buf_add(text, SPAN("\r\n"));
        }
    }
    if (!regular && !inflater_line(inflater, inflater->count, text))
        return HTTP2_REQUEST_MALFORMED;
    buf_add(text, SPAN("\r\n"));
    return HTTP2_REQUEST_DECODED;
}

/* ---- our decoders beside it ---- */

/* One connection: libnghttp2, our decoder that keeps all fields, and our decoder of requests. */
struct inflater_pair {
    struct inflater *theirs;
    struct http2_table whole, requests;
    char name[HTTP2_HPACK_TEXT_MAX], value[HTTP2_HPACK_TEXT_MAX];
    char storage[HTTP2_REQUEST_STORAGE], expected[4 * HTTP2_HEADER_LIST_MAX];
    struct http2_repeat last;
    char *block;      /* of the last request, on the heap */
    unsigned repeats; /* requests that were read by comparing them with the last one */
};

static inline void inflater_pair_begin(struct inflater_pair *pair)
{
    http2_table_init(&pair->whole, NULL);
    http2_table_init(&pair->requests, http2_request_keeps);
    pair->last.usable = false;
    pair->block = NULL;
    pair->repeats = 0;
}

static inline struct inflater_pair *inflater_pair_new(void)
{
    struct inflater_pair *pair = malloc(sizeof(*pair));
    CHECK(pair);
    pair->theirs = inflater_new();
    inflater_pair_begin(pair);
    return pair;
}

/* Begins the next connection, in the same memory. */
static inline void inflater_pair_restart(struct inflater_pair *pair)
{
    inflater_restart(pair->theirs);
    hpack_free(&pair->whole);
    hpack_free(&pair->requests);
    free(pair->block);
    inflater_pair_begin(pair);
}

static inline void inflater_pair_free(struct inflater_pair *pair)
{
    inflater_free(pair->theirs);
    hpack_free(&pair->whole);
    hpack_free(&pair->requests);
    free(pair->block);
    free(pair);
}

/* Compares every field with those that libnghttp2 has read. */
static inline void inflater_pair_fields(struct inflater_pair *pair, struct span block, bool right)
{
    struct http2_hpack_reader reader;
    struct http2_field field;
    enum http2_hpack step = HTTP2_HPACK_BROKEN;
    unsigned count = 0;

    if (http2_hpack_begin(&reader, &pair->whole, block, pair->name, pair->value)) {
        while ((step = http2_hpack_next(&reader, &field)) <= HTTP2_HPACK_GROW) {
            if (step == HTTP2_HPACK_END)
                break;
            if (step == HTTP2_HPACK_GROW) {
                hpack_grow(&pair->whole, reader.needed);
                continue;
            }
            struct inflater_field theirs = pair->theirs->field[count];
            CHECK(count++ < pair->theirs->count);
            CHECK(field.name.len == theirs.name.len && field.value.len == theirs.value.len);
            if (!theirs.name.at || !theirs.value.at)
                continue;
            CHECK(field.name.len > HTTP2_HPACK_TEXT_MAX || span_equal(field.name, theirs.name));
            CHECK(field.value.len > HTTP2_HPACK_TEXT_MAX || span_equal(field.value, theirs.value));
            CHECK(field.valid == inflater_valid(theirs, field.id != HTTP2_NAME_OTHER) ||
                  field.name.len + field.value.len > HTTP2_HPACK_TEXT_MAX);
        }
    }
    CHECK((step == HTTP2_HPACK_END) == right);
    if (!right)
        return;
    CHECK(count == pair->theirs->count);
    CHECK(pair->whole.size == nghttp2_hd_inflate_get_dynamic_table_size(pair->theirs->hd));
    CHECK(pair->whole.memory_size <= HTTP2_TABLE_MEMORY_MAX);
}

/* Reads the request of a block as a session does. `block` lives as long as the request. */
static inline enum http2_request_result inflater_pair_decode(struct inflater_pair *pair,
                                                             struct span block)
{
    struct http2_repeat *last = &pair->last;
    enum http2_request_result result;
    enum http_status status;

    if (http2_repeat_read(last, block)) {
        pair->repeats++;
        return HTTP2_REQUEST_DECODED;
    }
    http2_request_begin(&last->decoded, &pair->requests, block, pair->storage, false);
    while ((result = http2_request_decode(&last->decoded)) == HTTP2_REQUEST_GROW)
        hpack_grow(&pair->requests, last->decoded.reader.needed);
    last->parsed = (struct http_request){ 0 };
    last->usable = result == HTTP2_REQUEST_DECODED &&
                   http_request_parse(&last->parsed, last->decoded.text, &status) == HTTP_PARSED;
    return result;
}

/* Compares the request, from the same block. */
static inline void inflater_pair_request(struct inflater_pair *pair, struct span block, bool right)
{
    struct buf text = buf_over(pair->expected, sizeof(pair->expected));
    const struct http2_request *request = &pair->last.decoded;
    char *copy = malloc(block.len + 1);
    CHECK(copy);
    memcpy(copy + 1, block.at, block.len); /* a sanitizer finds a read past it */
    enum http2_request_result result = inflater_pair_decode(pair, span_of(copy + 1, block.len));

    free(pair->block);
    pair->block = copy;
    CHECK((result != HTTP2_REQUEST_BROKEN) == right);
    if (!right)
        return;
    CHECK(result == inflater_request(pair->theirs, &text));
    CHECK(!text.overflow);
    CHECK(result != HTTP2_REQUEST_DECODED || span_equal(request->text, buf_span(&text)));
    if (pair->last.usable) {
        struct http_request parsed = { 0 };
        enum http_status status;
        CHECK(http_request_parse(&parsed, request->text, &status) == HTTP_PARSED);
        CHECK(parsed_same(&parsed, &pair->last.parsed));
    }
    CHECK(pair->requests.size == pair->whole.size);
    CHECK(http2_table_used(&pair->requests) <= http2_table_used(&pair->whole));
}

/* Reads a block on both sides. False: it is broken, and nothing more can be read. */
static inline bool inflater_pair_read(struct inflater_pair *pair, struct span block)
{
    bool right = inflater_read(pair->theirs, block);

    inflater_pair_fields(pair, block, right);
    inflater_pair_request(pair, block, right);
    return right;
}
