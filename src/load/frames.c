/* SPDX-License-Identifier: MIT */
#include "load/frames.h"

#include "http2/error.h"

enum {
    PAYLOAD_MAX = 16384, /* bytes of a frame; this client announces no other value */
    PAYLOAD_LIMIT = (1 << 24) - 1,
    WINDOW_LIMIT = INT32_MAX,
    REPLY_MAX = 64 /* bytes that one frame makes the client append at most */
};

/* A frame that is no event. */
enum { NO_EVENT = -1 };

/* ---- streams that frames belong to ---- */

/* The place of a stream; `places`: it is closed. Most frames belong to the stream of the frame
 * before, or to that of the next place. */
static unsigned find_place(struct load_http2 *h, uint32_t id)
{
    for (unsigned i = 0, at = h->found; i < h->places; i++, at++) {
        at = at < h->places ? at : 0;
        if (h->stream[at].id == id) {
            h->found = at;
            return at;
        }
    }
    return h->places;
}

/* Whether the client has opened the stream, now or earlier. */
static bool was_opened(const struct load_http2 *h, uint32_t id)
{
    return id % 2 == 1 && id < h->next_id;
}

static int fail_connection(struct buf *out, struct load_frames_arrival *ret, enum http2_error code)
{
    http2_frame_add_goaway(out, 0, code, SPAN(""));
    ret->error = LOAD_bad_http2;
    return LOAD_FRAMES_FAILED;
}

static int reset_malformed(struct load_http2 *h, unsigned place, enum http2_error code,
                           struct buf *out, struct load_frames_arrival *ret)
{
    http2_frame_add_reset(out, h->stream[place].id, code);
    load_http2_forget(h, place);
    ret->place = place;
    return LOAD_FRAMES_MALFORMED;
}

/* The response is whole. A server that has answered needs no further part of the request. */
static void end_stream(struct load_http2 *h, unsigned place, struct buf *out)
{
    if (h->stream[place].unsent > 0)
        http2_frame_add_reset(out, h->stream[place].id, HTTP2_CANCEL);
    load_http2_forget(h, place);
}

/* Whether the body has as many bytes as the head says (RFC 9113 section 8.1.1). `whole`: no more
 * bytes follow. */
static bool has_right_length(const struct load_http2 *h, const struct load_http2_stream *stream,
                             bool whole)
{
    if (h->head || stream->status == 204 || stream->status == 304)
        return stream->received == 0;
    return stream->length == HTTP2_CLIENT_NO_LENGTH ||
           (whole ? stream->received == stream->length : stream->received <= stream->length);
}

/* ---- DATA ---- */

/* Counts received bytes, and refunds them when they are half of the window. So no frame of the
 * server can exceed a window. */
static void count_received(uint32_t *unrefunded, uint32_t bytes, uint32_t id, struct buf *out)
{
    *unrefunded += bytes;
    if (*unrefunded < LOAD_HTTP2_WINDOW / 2)
        return;
    http2_frame_add_window(out, id, *unrefunded);
    *unrefunded = 0;
}

static int begin_data(struct load_http2 *h, struct http2_frame frame, struct span *in,
                      struct buf *out, struct load_frames_arrival *ret)
{
    bool padded = (frame.flags & HTTP2_FRAME_PADDED) != 0;
    if (!was_opened(h, frame.stream))
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    if (padded && in->len == HTTP2_FRAME_HEAD)
        return LOAD_FRAMES_MORE;
    uint32_t padding = padded ? (unsigned char)in->at[HTTP2_FRAME_HEAD] : 0;
    if (padded && padding >= frame.length)
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    unsigned place = find_place(h, frame.stream);
    h->data_ends = (frame.flags & HTTP2_FRAME_END_STREAM) != 0;
    count_received(&h->unrefunded, frame.length, 0, out);
    if (place < h->places && !h->data_ends)
        count_received(&h->stream[place].unrefunded, frame.length, frame.stream, out);
    *in = span_skip(*in, HTTP2_FRAME_HEAD + (padded ? 1u : 0u));
    h->in_data = true;
    h->data_place = place;
    h->data_left = frame.length - padding - (padded ? 1 : 0);
    h->padding_left = padding;
    return NO_EVENT;
}

static int take_data(struct load_http2 *h, struct span *in, struct buf *out,
                     struct load_frames_arrival *ret)
{
    struct span data = span_first(*in, h->data_left);
    unsigned place = h->data_place;
    if (data.len == 0 && h->data_left > 0)
        return LOAD_FRAMES_MORE;
    *in = span_skip(*in, data.len);
    h->data_left -= (uint32_t)data.len;
    h->in_data = h->data_left > 0;
    bool ended = !h->in_data && h->data_ends;
    if (place == h->places || (data.len == 0 && !ended))
        return NO_EVENT;
    struct load_http2_stream *stream = &h->stream[place];
    stream->received += data.len;
    if (stream->status == 0 || !has_right_length(h, stream, ended))
        return reset_malformed(h, place, HTTP2_PROTOCOL_ERROR, out, ret);
    ret->place = place;
    ret->data = data;
    ret->ended = ended;
    if (ended)
        end_stream(h, place, out);
    return LOAD_FRAMES_DATA;
}

/* ---- header blocks ---- */

/* The part of a HEADERS frame that belongs to the block. false: the frame is too short. */
static bool strip_headers(struct http2_frame frame, struct span payload, struct span *ret_part)
{
    size_t padding = 0;
    if ((frame.flags & HTTP2_FRAME_PADDED) != 0) {
        if (payload.len == 0)
            return false;
        padding = (unsigned char)payload.at[0];
        payload = span_skip(payload, 1);
    }
    size_t front = (frame.flags & HTTP2_FRAME_PRIORITISED) != 0 ? 5 : 0;
    if (payload.len < front + padding)
        return false;
    *ret_part = span_of(payload.at + front, payload.len - front - padding);
    return true;
}

/* Finds all of a header block, which CONTINUATION frames may continue. *ret_used: the bytes of all
 * its frames. */
static int join_block(struct http2_frame frame, struct span in, char *joined, struct buf *out,
                      struct load_frames_arrival *ret, struct span *ret_block, size_t *ret_used)
{
    uint32_t id = frame.stream;
    size_t used = HTTP2_FRAME_HEAD + frame.length;
    if (!strip_headers(frame, span_of(in.at + HTTP2_FRAME_HEAD, frame.length), ret_block))
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    struct buf block = buf_over(joined, LOAD_FRAMES_BLOCK_MAX);
    if ((frame.flags & HTTP2_FRAME_END_HEADERS) == 0)
        buf_add(&block, *ret_block);
    while ((frame.flags & HTTP2_FRAME_END_HEADERS) == 0) {
        if (in.len < used + HTTP2_FRAME_HEAD)
            return LOAD_FRAMES_MORE;
        const char *at = in.at + used;
        frame = http2_frame_read(at);
        used += HTTP2_FRAME_HEAD + frame.length;
        if (frame.type != HTTP2_FRAME_CONTINUATION || frame.stream != id)
            return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
        if (used > LOAD_FRAMES_BLOCK_MAX)
            return fail_connection(out, ret, HTTP2_ENHANCE_YOUR_CALM);
        if (in.len < used)
            return LOAD_FRAMES_MORE;
        buf_add(&block, span_of(at + HTTP2_FRAME_HEAD, frame.length));
        *ret_block = buf_span(&block);
    }
    *ret_used = used;
    return NO_EVENT;
}

/* Whether the block was decoded before, for the same target, with a table as empty as it is now:
 * the same bytes then mean the same. */
static bool recall_block(const struct load_http2 *h, struct load_frames_memory *memory,
                         unsigned slot, struct span block)
{
    const struct load_frames_head *known = &memory->heads[slot];
    if (known->block_len == 0 || known->block_len != block.len || h->table.count > 0 ||
        known->table_size != h->table.size_max || memcmp(known->block, block.at, block.len) != 0)
        return false;
    memory->response.status = known->status;
    memory->response.content_length = known->length;
    return true;
}

/* Keeps a block that has not changed the table. A block that begins with a size update has. */
static void remember_block(const struct load_http2 *h, struct load_frames_memory *memory,
                           unsigned slot, struct span block)
{
    struct load_frames_head *known = &memory->heads[slot];
    if (block.len == 0 || block.len > LOAD_FRAMES_HEAD_MAX || h->table.count > 0 ||
        ((unsigned char)block.at[0] & 0xe0) == 0x20)
        return;
    known->status = memory->response.status;
    known->length = memory->response.content_length;
    known->block_len = (uint16_t)block.len;
    known->table_size = h->table.size_max;
    memcpy(known->block, block.at, block.len);
}

/* Decodes a block into memory->response. `place`: of its stream; `places`: it is closed, and the
 * block is decoded for the table alone. */
static enum http2_client_result decode_block(struct load_http2 *h,
                                             struct load_frames_memory *memory, unsigned place,
                                             bool trailers, struct span block)
{
    bool first = place < h->places && !trailers;
    unsigned slot = first ? h->stream[place].slot % LOAD_FRAMES_HEADS : 0;
    if (first && !h->decoding && recall_block(h, memory, slot, block))
        return HTTP2_CLIENT_DECODED;
    if (!h->decoding)
        http2_client_begin(&memory->response, &h->table, block, trailers);
    bool was_empty = h->table.count == 0;
    enum http2_client_result result = http2_client_decode(&memory->response, memory->storage);
    h->decoding = result == HTTP2_CLIENT_GROW;
    if (first && was_empty && result == HTTP2_CLIENT_DECODED)
        remember_block(h, memory, slot, block);
    return result;
}

/* Applies the decoded head of an open stream. */
static int apply_head(struct load_http2 *h, const struct http2_client_response *response,
                      unsigned place, bool ended, struct buf *out, struct load_frames_arrival *ret)
{
    struct load_http2_stream *stream = &h->stream[place];
    bool trailers = stream->status != 0;
    bool interim = !trailers && response->status < 200;
    if (!trailers && !interim) {
        stream->status = response->status;
        stream->length = response->content_length;
    }
    /* A stream never switches protocols (RFC 9113 section 8.6). */
    if ((trailers && !ended) || (interim && (ended || response->status == 101)) ||
        (ended && !has_right_length(h, stream, true)))
        return reset_malformed(h, place, HTTP2_PROTOCOL_ERROR, out, ret);
    ret->place = place;
    ret->data = SPAN("");
    ret->ended = ended;
    if (ended)
        end_stream(h, place, out);
    return trailers ? LOAD_FRAMES_DATA : LOAD_FRAMES_ANSWER;
}

static int take_headers(struct load_http2 *h, struct load_frames_memory *memory,
                        struct http2_frame frame, struct span *in, struct buf *out,
                        struct load_frames_arrival *ret)
{
    struct span block;
    size_t used;
    if (!was_opened(h, frame.stream))
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    int event = join_block(frame, *in, memory->joined, out, ret, &block, &used);
    if (event != NO_EVENT)
        return event;
    unsigned place = find_place(h, frame.stream);
    bool trailers = place < h->places && h->stream[place].status != 0;
    switch (decode_block(h, memory, place, trailers, block)) {
    case HTTP2_CLIENT_GROW:
        ret->needed = memory->response.reader.needed;
        return LOAD_FRAMES_GROW;
    case HTTP2_CLIENT_BROKEN:
        return fail_connection(out, ret, HTTP2_COMPRESSION_ERROR);
    case HTTP2_CLIENT_MALFORMED:
        *in = span_skip(*in, used);
        return place < h->places ? reset_malformed(h, place, HTTP2_PROTOCOL_ERROR, out, ret)
                                 : NO_EVENT;
    case HTTP2_CLIENT_DECODED:
        break;
    }
    *in = span_skip(*in, used);
    if (place == h->places)
        return NO_EVENT;
    return apply_head(h, &memory->response, place, (frame.flags & HTTP2_FRAME_END_STREAM) != 0, out,
                      ret);
}

/* ---- frames of the connection ---- */

/* Applies one setting. Returns an error code of the connection, or HTTP2_NO_ERROR. */
static enum http2_error apply_setting(struct load_http2 *h, unsigned setting, uint32_t value)
{
    switch (setting) {
    case HTTP2_FRAME_HEADER_TABLE_SIZE:
        if (value < HTTP2_TABLE_MAX) { /* requests use literals from now on */
            h->form = HTTP2_CLIENT_PLAIN;
            h->shrinks = true;
        }
        break;
    case HTTP2_FRAME_ENABLE_PUSH:
        return value == 0 ? HTTP2_NO_ERROR : HTTP2_PROTOCOL_ERROR;
    case HTTP2_FRAME_MAX_CONCURRENT_STREAMS:
        h->streams_max = value;
        break;
    case HTTP2_FRAME_INITIAL_WINDOW_SIZE:
        if (value > WINDOW_LIMIT)
            return HTTP2_FLOW_CONTROL_ERROR;
        for (unsigned i = 0; i < h->places; i++) {
            int64_t window = (int64_t)h->stream[i].window + value - h->initial_window;
            if (h->stream[i].id != 0 && window > WINDOW_LIMIT)
                return HTTP2_FLOW_CONTROL_ERROR;
            h->stream[i].window = (int32_t)window;
        }
        h->initial_window = value;
        break;
    case HTTP2_FRAME_MAX_FRAME_SIZE:
        if (value < PAYLOAD_MAX || value > PAYLOAD_LIMIT)
            return HTTP2_PROTOCOL_ERROR;
        h->frame_max = value;
        break;
    default:
        break;
    }
    return HTTP2_NO_ERROR;
}

static int take_settings(struct load_http2 *h, struct http2_frame frame, struct span payload,
                         struct buf *out, struct load_frames_arrival *ret)
{
    if (frame.stream != 0)
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    bool ack = (frame.flags & HTTP2_FRAME_ACK) != 0;
    if (payload.len % HTTP2_FRAME_SETTING_BYTES != 0 || (ack && payload.len > 0))
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    if (ack)
        return NO_EVENT;
    for (; payload.len > 0; payload = span_skip(payload, HTTP2_FRAME_SETTING_BYTES)) {
        unsigned setting = (unsigned)(unsigned char)payload.at[0] << 8 |
                           (unsigned char)payload.at[1];
        enum http2_error error = apply_setting(h, setting, http2_frame_read_u32(payload.at + 2));
        if (error != HTTP2_NO_ERROR)
            return fail_connection(out, ret, error);
    }
    http2_frame_add(out,
                    (struct http2_frame){ .type = HTTP2_FRAME_SETTINGS, .flags = HTTP2_FRAME_ACK });
    ret->first = !h->ready;
    h->ready = true;
    return LOAD_FRAMES_SETTINGS;
}

static int take_window_update(struct load_http2 *h, struct http2_frame frame, struct span payload,
                              struct buf *out, struct load_frames_arrival *ret)
{
    if (payload.len != 4)
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    uint32_t bytes = http2_frame_read_u32(payload.at) & INT32_MAX;
    if (frame.stream == 0) {
        h->window += bytes;
        if (bytes == 0 || h->window > WINDOW_LIMIT)
            return fail_connection(out, ret,
                                   bytes == 0 ? HTTP2_PROTOCOL_ERROR : HTTP2_FLOW_CONTROL_ERROR);
        return NO_EVENT;
    }
    if (!was_opened(h, frame.stream))
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    unsigned place = find_place(h, frame.stream);
    if (place == h->places)
        return NO_EVENT;
    int64_t window = (int64_t)h->stream[place].window + bytes;
    if (bytes == 0 || window > WINDOW_LIMIT)
        return reset_malformed(
            h, place, bytes == 0 ? HTTP2_PROTOCOL_ERROR : HTTP2_FLOW_CONTROL_ERROR, out, ret);
    h->stream[place].window = (int32_t)window;
    return NO_EVENT;
}

static int take_reset(struct load_http2 *h, struct http2_frame frame, struct span payload,
                      struct buf *out, struct load_frames_arrival *ret)
{
    if (payload.len != 4)
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    if (!was_opened(h, frame.stream))
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    unsigned place = find_place(h, frame.stream);
    if (place == h->places)
        return NO_EVENT;
    load_http2_forget(h, place);
    ret->place = place;
    ret->code = http2_frame_read_u32(payload.at);
    return LOAD_FRAMES_RESET;
}

static int take_goaway(struct load_http2 *h, struct http2_frame frame, struct span payload,
                       struct buf *out, struct load_frames_arrival *ret)
{
    if (payload.len < 8)
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    if (frame.stream != 0)
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    uint32_t last = http2_frame_read_u32(payload.at) & INT32_MAX;
    uint32_t code = http2_frame_read_u32(payload.at + 4);
    h->goaway_last = last < h->goaway_last ? last : h->goaway_last;
    h->goaway_error = code != HTTP2_NO_ERROR ? code : h->goaway_error;
    h->closing = true;
    return LOAD_FRAMES_GOAWAY;
}

static int take_ping(struct http2_frame frame, struct span payload, struct buf *out,
                     struct load_frames_arrival *ret)
{
    if (payload.len != 8)
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    if (frame.stream != 0)
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    if ((frame.flags & HTTP2_FRAME_ACK) != 0)
        return NO_EVENT;
    http2_frame_add_ping(out, payload.at, true);
    return LOAD_FRAMES_PING;
}

/* A frame that is neither DATA nor HEADERS. All of it is in the input. */
static int take_control(struct load_http2 *h, struct http2_frame frame, struct span *in,
                        struct buf *out, struct load_frames_arrival *ret)
{
    struct span payload = span_of(in->at + HTTP2_FRAME_HEAD, frame.length);
    *in = span_skip(*in, HTTP2_FRAME_HEAD + frame.length);
    switch (frame.type) {
    case HTTP2_FRAME_SETTINGS:
        return take_settings(h, frame, payload, out, ret);
    case HTTP2_FRAME_WINDOW_UPDATE:
        return take_window_update(h, frame, payload, out, ret);
    case HTTP2_FRAME_RST_STREAM:
        return take_reset(h, frame, payload, out, ret);
    case HTTP2_FRAME_GOAWAY:
        return take_goaway(h, frame, payload, out, ret);
    case HTTP2_FRAME_PING:
        return take_ping(frame, payload, out, ret);
    case HTTP2_FRAME_PUSH_PROMISE:
    case HTTP2_FRAME_CONTINUATION:
        return fail_connection(out, ret, HTTP2_PROTOCOL_ERROR);
    default: /* RFC 9113 section 5.5: unknown types are ignored */
        return NO_EVENT;
    }
}

/* Reads the next frame, or a part of DATA. */
static int take_frame(struct load_http2 *h, struct load_frames_memory *memory, struct span *in,
                      struct buf *out, struct load_frames_arrival *ret)
{
    if (h->in_data)
        return take_data(h, in, out, ret);
    size_t padding = in->len < h->padding_left ? in->len : h->padding_left;
    h->padding_left -= (uint32_t)padding;
    *in = span_skip(*in, padding);
    if (in->len < HTTP2_FRAME_HEAD)
        return LOAD_FRAMES_MORE;
    struct http2_frame frame = http2_frame_read(in->at);
    if (!h->ready && frame.type != HTTP2_FRAME_SETTINGS) {
        ret->error = LOAD_no_http; /* RFC 9113 section 3.4: SETTINGS come first */
        return LOAD_FRAMES_FAILED;
    }
    if (frame.length > PAYLOAD_MAX)
        return fail_connection(out, ret, HTTP2_FRAME_SIZE_ERROR);
    if (buf_room(out) < REPLY_MAX) /* the server sends more than it reads */
        return fail_connection(out, ret, HTTP2_ENHANCE_YOUR_CALM);
    if (frame.type == HTTP2_FRAME_DATA)
        return begin_data(h, frame, in, out, ret);
    if (in->len < HTTP2_FRAME_HEAD + frame.length)
        return LOAD_FRAMES_MORE;
    return frame.type == HTTP2_FRAME_HEADERS ? take_headers(h, memory, frame, in, out, ret)
                                             : take_control(h, frame, in, out, ret);
}

enum load_frames_event load_frames_read(struct load_http2 *h, struct load_frames_memory *memory,
                                        struct span *in, struct buf *out,
                                        struct load_frames_arrival *ret)
{
    int event;
    do {
        event = take_frame(h, memory, in, out, ret);
    } while (event == NO_EVENT);
    return (enum load_frames_event)event;
}
