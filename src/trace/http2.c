/* SPDX-License-Identifier: MIT */
#include "trace/http2.h"

#include "base/num.h"
#include "http2/client.h"
#include "http2/error.h"
#include "http2/frame.h"
#include "http2/request.h"

#include <stdlib.h>

enum {
    BLOCK_MAX = 2 * HTTP2_BLOCK_MAX,
    FRAMES_MAX = BLOCK_MAX + 1024, /* with the preface and the heads of frames */
    STREAM = 1
};

struct trace_http2 {
    struct http2_table table; /* of the decoder, for both directions in turn */
    struct span text;         /* in `storage` */
    size_t frames_len, block_bytes;
    char memory[HTTP2_TABLE_MEMORY_MAX];
    char storage[HTTP2_REQUEST_STORAGE];
    char name[HTTP2_HPACK_TEXT_MAX], value[HTTP2_HPACK_TEXT_MAX]; /* of a field of the answer */
    char block[BLOCK_MAX];
    char frames[FRAMES_MAX];
};

static void reset_table(struct trace_http2 *t)
{
    http2_table_init(&t->table, NULL);
    http2_table_move(&t->table, t->memory, sizeof(t->memory));
}

/* ---- the request ---- */

/* HEADERS, and CONTINUATION frames for what does not fit into it. */
static void add_block(struct buf *out, struct span block)
{
    uint8_t type = HTTP2_FRAME_HEADERS;
    do {
        struct span part = span_first(block, HTTP2_PAYLOAD_MAX);
        block = span_skip(block, part.len);
        uint8_t flags = type == HTTP2_FRAME_HEADERS ? HTTP2_FRAME_END_STREAM : 0;
        flags |= block.len == 0 ? HTTP2_FRAME_END_HEADERS : 0;
        http2_frame_add(out, (struct http2_frame){ .length = (uint32_t)part.len,
                                                   .stream = STREAM,
                                                   .type = type,
                                                   .flags = flags });
        buf_add(out, part);
        type = HTTP2_FRAME_CONTINUATION;
    } while (block.len > 0);
}

/* What the server decodes. */
static struct span decode_request(struct trace_http2 *t, struct span block)
{
    struct http2_request request;
    reset_table(t);
    http2_request_begin(&request, &t->table, block, t->storage, false);
    return http2_request_decode(&request) == HTTP2_REQUEST_DECODED ? request.text : SPAN("");
}

struct trace_http2 *trace_http2_new(struct span request, struct span scheme)
{
    struct trace_http2 *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    struct buf block = buf_over(t->block, sizeof(t->block));
    struct buf out = buf_over(t->frames, sizeof(t->frames));
    (void)http2_client_add_request(&block, request, scheme, HTTP2_CLIENT_PLAIN);
    buf_add(&out, HTTP2_FRAME_PREFACE);
    http2_frame_add(&out, (struct http2_frame){ .type = HTTP2_FRAME_SETTINGS });
    add_block(&out, buf_span(&block));
    CHECK(!block.overflow && !out.overflow); /* a request has at most TRACE_REQUEST_MAX bytes */
    t->frames_len = out.len;
    t->text = decode_request(t, buf_span(&block));
    return t;
}

void trace_http2_free(struct trace_http2 *t)
{
    free(t);
}

struct span trace_http2_frames(const struct trace_http2 *t)
{
    return span_of(t->frames, t->frames_len);
}

struct span trace_http2_text(const struct trace_http2 *t)
{
    return t->text;
}

size_t trace_http2_block_bytes(const struct trace_http2 *t)
{
    return t->block_bytes;
}

/* ---- the answer ---- */

/* Takes the next whole frame. False: it is not complete. */
static bool take_frame(struct span *in, struct http2_frame *ret_frame, struct span *ret_payload)
{
    if (in->len < HTTP2_FRAME_HEAD)
        return false;
    *ret_frame = http2_frame_read(in->at);
    if (in->len - HTTP2_FRAME_HEAD < ret_frame->length)
        return false;
    *ret_payload = span_of(in->at + HTTP2_FRAME_HEAD, ret_frame->length);
    *in = span_skip(*in, HTTP2_FRAME_HEAD + ret_frame->length);
    return true;
}

static void add_line(struct buf *head, const struct http2_field *field)
{
    if (field->id == HTTP2_NAME_STATUS) {
        buf_add(head, SPAN("HTTP/2.0 "));
        buf_add(head, field->value);
    } else {
        buf_add(head, field->name);
        buf_add(head, SPAN(": "));
        buf_add(head, field->value);
    }
    buf_add(head, SPAN("\r\n"));
}

/* False: the block cannot be decoded. */
static bool decode_answer(struct trace_http2 *t, struct span block, struct buf *head)
{
    struct http2_hpack_reader reader;
    struct http2_field field;
    enum http2_hpack step;
    reset_table(t);
    if (!http2_hpack_begin(&reader, &t->table, block, t->name, t->value))
        return false;
    while ((step = http2_hpack_next(&reader, &field)) == HTTP2_HPACK_FIELD)
        add_line(head, &field);
    buf_add(head, SPAN("\r\n"));
    return step == HTTP2_HPACK_END && !head->overflow;
}

/* Writes why there is no answer: `what` has happened, with an error code of RFC 9113 section 7. */
static enum trace_http2_result refuse_answer(struct buf *why, const char *what, uint32_t error)
{
    static const char *const names[] = {
        [HTTP2_NO_ERROR] = "NO_ERROR",
        [HTTP2_PROTOCOL_ERROR] = "PROTOCOL_ERROR",
        [HTTP2_INTERNAL_ERROR] = "INTERNAL_ERROR",
        [HTTP2_REFUSED_STREAM] = "REFUSED_STREAM",
        [HTTP2_COMPRESSION_ERROR] = "COMPRESSION_ERROR",
        [HTTP2_ENHANCE_YOUR_CALM] = "ENHANCE_YOUR_CALM",
    };
    const char *name = error < sizeof(names) / sizeof(names[0]) ? names[error] : NULL;
    buf_add(why, span_text(what));
    buf_add(why, SPAN(" with the error "));
    if (name)
        buf_add(why, span_text(name));
    else
        buf_add_u64(why, error);
    return TRACE_HTTP2_REFUSED;
}

/* A whole header block has arrived. MORE: it is that of an interim response. */
static enum trace_http2_result take_block(struct trace_http2 *t, const struct buf *block,
                                          struct buf *head, struct buf *why)
{
    t->block_bytes = block->len;
    if (block->overflow || !decode_answer(t, buf_span(block), head)) {
        buf_add(why, SPAN("the head of the answer cannot be decoded"));
        return TRACE_HTTP2_REFUSED;
    }
    if (!span_starts(buf_span(head), SPAN("HTTP/2.0 1")))
        return TRACE_HTTP2_HEAD;
    head->len = 0;
    return TRACE_HTTP2_MORE;
}

enum trace_http2_result trace_http2_read(struct trace_http2 *t, struct span frames,
                                         struct buf *head, struct buf *why)
{
    struct buf block = buf_over(t->block, sizeof(t->block));
    struct http2_frame frame;
    struct span payload;
    while (take_frame(&frames, &frame, &payload)) {
        if (frame.type == HTTP2_FRAME_RST_STREAM && frame.stream == STREAM && payload.len == 4)
            return refuse_answer(why, "the server resets the stream of this request",
                                 http2_frame_read_u32(payload.at));
        if (frame.type == HTTP2_FRAME_GOAWAY && payload.len >= 8)
            return refuse_answer(why, "the server ends the connection",
                                 http2_frame_read_u32(payload.at + 4));
        if (frame.stream != STREAM ||
            (frame.type != HTTP2_FRAME_HEADERS && frame.type != HTTP2_FRAME_CONTINUATION))
            continue;
        buf_add(&block, payload);
        if (!(frame.flags & HTTP2_FRAME_END_HEADERS))
            continue;
        const enum trace_http2_result result = take_block(t, &block, head, why);
        if (result != TRACE_HTTP2_MORE)
            return result;
        block.len = 0;
    }
    return TRACE_HTTP2_MORE;
}
