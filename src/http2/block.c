/* SPDX-License-Identifier: MIT */
#include "http2/block.h"

#include "http2/frame.h"
#include "http2/limits.h"

static enum http2_block_result fail_block(struct http2_block *ret_block, enum http2_fault fault)
{
    ret_block->fault = (uint8_t)fault;
    return HTTP2_BLOCK_FAILED;
}

/* The fields of a HEADERS frame, whose payload is `payload`. Returns a fault, or
 * HTTP2_FAULT_NONE. */
static enum http2_fault find_fields(uint8_t flags, struct span payload, struct span *ret_fields)
{
    size_t padding = 0;
    size_t front = flags & HTTP2_FRAME_PRIORITISED ? 5 : 0;
    if (flags & HTTP2_FRAME_PADDED) {
        if (payload.len == 0)
            return HTTP2_FAULT_FRAME_FORM;
        padding = (uint8_t)payload.at[0];
        front++;
    }
    if (payload.len < front)
        return HTTP2_FAULT_FRAME_FORM;
    if (payload.len - front < padding)
        return HTTP2_FAULT_PADDING;
    *ret_fields = span_of(payload.at + front, payload.len - front - padding);
    return HTTP2_FAULT_NONE;
}

/* Measures the block of `block`, whose first frame is there: sets its `size`. Nothing is copied
 * before all of the block has arrived, because it is measured again after each read. */
static enum http2_block_result measure_block(struct span in, struct http2_block *block)
{
    for (unsigned count = 1;; count++) {
        struct span rest = span_skip(in, block->size);
        if (rest.len < HTTP2_FRAME_HEAD)
            return HTTP2_BLOCK_MORE;
        struct http2_frame frame = http2_frame_read(rest.at);
        if (frame.type != HTTP2_FRAME_CONTINUATION || frame.stream != block->stream)
            return fail_block(block, HTTP2_FAULT_BLOCK_ORDER);
        if (frame.length > HTTP2_PAYLOAD_MAX)
            return fail_block(block, HTTP2_FAULT_FRAME_LENGTH);
        if (count > HTTP2_CONTINUATIONS_MAX)
            return fail_block(block, HTTP2_FAULT_CONTINUATIONS);
        block->size += HTTP2_FRAME_HEAD + frame.length;
        if (block->size > HTTP2_BLOCK_MAX)
            return fail_block(block, HTTP2_FAULT_BLOCK_LENGTH);
        if (in.len < block->size)
            return HTTP2_BLOCK_MORE;
        if (frame.flags & HTTP2_FRAME_END_HEADERS)
            return HTTP2_BLOCK_WHOLE;
    }
}

/* Joins the fields of the first frame with those of the CONTINUATION frames, which begin after
 * `first` bytes. */
static void join_block(struct span in, size_t first, char *joined, struct http2_block *block)
{
    size_t len = block->fields.len;
    memcpy(joined, block->fields.at, len);
    for (size_t at = first; at < block->size;) {
        size_t more = http2_frame_read(in.at + at).length;
        memcpy(joined + len, in.at + at + HTTP2_FRAME_HEAD, more);
        len += more;
        at += HTTP2_FRAME_HEAD + more;
    }
    block->fields = span_of(joined, len);
}

enum http2_block_result http2_block_read(struct span in, char *joined,
                                         struct http2_block *ret_block)
{
    struct http2_frame frame = http2_frame_read(in.at);
    if (frame.stream == 0)
        return fail_block(ret_block, HTTP2_FAULT_FRAME_STREAM);
    size_t size = HTTP2_FRAME_HEAD + frame.length;
    if (in.len < size)
        return HTTP2_BLOCK_MORE;

    struct span fields;
    struct span payload = span_of(in.at + HTTP2_FRAME_HEAD, frame.length);
    enum http2_fault fault = find_fields(frame.flags, payload, &fields);
    if (fault != HTTP2_FAULT_NONE)
        return fail_block(ret_block, fault);
    *ret_block = (struct http2_block){ .fields = fields,
                                       .size = size,
                                       .stream = frame.stream,
                                       .ends = frame.flags & HTTP2_FRAME_END_STREAM };
    if (frame.flags & HTTP2_FRAME_END_HEADERS)
        return HTTP2_BLOCK_WHOLE;
    enum http2_block_result result = measure_block(in, ret_block);
    if (result == HTTP2_BLOCK_WHOLE)
        join_block(in, size, joined, ret_block);
    return result;
}
