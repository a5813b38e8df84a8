/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. Most frames are read when all of them have arrived. DATA and unknown frames
 * are read as they arrive: `payload_left` and `padding_left` count the rest.
 *
 * A stream is in the table from its HEADERS frame until the server's answer is complete or either
 * side resets it. Two bit maps remember what became of the latest 64 streams. So the server can
 * tell a client that violates the protocol from one whose frames crossed a reset on the way
 * (RFC 9113 section 5.1). Frames on older streams are ignored, and cost a part of the budget.
 *
 * A function that finds a connection error notes it (http2_control_fail). http2_connection_read
 * then writes GOAWAY, in one place.
 */
#include "http2/connection.h"

#include "base/check.h"
#include "http2/block.h"
#include "http2/control.h"
#include "http2/frame.h"
#include "http2/schedule.h"

enum { NOTHING = HTTP2_CONTROL_NOTHING, STREAM_LARGEST = 0x7fffffff };

/* ---- the connection ---- */

void http2_connection_begin(struct http2_connection *c, unsigned streams_most, struct buf *out)
{
    enum { SETTINGS = 3 };
    *c = (struct http2_connection){ .window = HTTP2_WINDOW,
                                    .initial_window = HTTP2_WINDOW,
                                    .streams_most = (uint8_t)streams_most,
                                    .resets = HTTP2_RESETS_MAX,
                                    .control = HTTP2_CONTROL_MAX };
    http2_frame_add(out, (struct http2_frame){ .length = SETTINGS * HTTP2_FRAME_SETTING_BYTES,
                                               .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(out, HTTP2_FRAME_MAX_CONCURRENT_STREAMS, streams_most);
    http2_frame_add_setting(out, HTTP2_FRAME_MAX_HEADER_LIST_SIZE, HTTP2_HEADER_LIST_MAX);
    http2_frame_add_setting(out, HTTP2_FRAME_NO_RFC7540_PRIORITIES, 1);
}

struct http2_streams *http2_connection_release(struct http2_connection *c)
{
    struct http2_streams *streams = c->streams;
    if (streams && streams->open > 0)
        *streams = (struct http2_streams){ .open = 0 };
    if (streams)
        streams->early_count = 0;
    c->streams = NULL;
    c->payload_place = 0;
    return streams;
}

static enum http2_event report_failure(struct http2_connection *c, struct span *in, struct buf *out,
                                       struct http2_arrival *ret_arrival)
{
    if (c->phase == HTTP2_CONTROL_FAILING) {
        if (buf_room(out) < HTTP2_REPLY_ROOM)
            return HTTP2_FULL;
        enum http2_fault fault = (enum http2_fault)c->fault;
        http2_frame_add_goaway(out, c->finishing ? c->final_stream : c->last_stream,
                               http2_fault_error(fault), http2_fault_sentence(fault));
        c->phase = HTTP2_CONTROL_FAILED;
    }
    *in = span_skip(*in, in->len);
    *ret_arrival = (struct http2_arrival){ .fault = c->fault };
    return HTTP2_FAILED;
}

void http2_connection_fail(struct http2_connection *c, struct buf *out, enum http2_fault fault)
{
    struct span none = SPAN("");
    struct http2_arrival arrival;
    http2_control_fail(c, fault);
    (void)report_failure(c, &none, out, &arrival);
}

bool http2_connection_failing(const struct http2_connection *c)
{
    return c->phase == HTTP2_CONTROL_FAILING;
}

void http2_connection_drain(struct http2_connection *c, struct buf *out)
{
    if (c->finishing || c->phase >= HTTP2_CONTROL_FAILING)
        return;
    if (c->draining) {
        http2_control_finish(c, out);
        return;
    }
    c->draining = true;
    http2_frame_add_goaway(out, STREAM_LARGEST, HTTP2_NO_ERROR, SPAN(""));
    http2_frame_add_ping(out, http2_control_drain_ping, false);
}

bool http2_connection_drained(const struct http2_connection *c)
{
    return (c->finishing || c->client_goes) && http2_connection_open(c) == 0;
}

/* ---- streams that send ---- */

void http2_connection_prioritise(struct http2_connection *c, struct http2_stream *stream,
                                 struct http2_priority priority)
{
    if (!stream->updated)
        http2_stream_prioritise(c->streams, stream, priority);
}

void http2_connection_want(struct http2_connection *c, struct http2_stream *stream)
{
    if (stream->wants)
        return;
    stream->wants = true;
    if (stream->window > 0)
        http2_schedule_add(c->streams, stream);
}

void http2_connection_rest(struct http2_connection *c, struct http2_stream *stream)
{
    stream->wants = false;
    http2_schedule_remove(c->streams, stream);
}

struct http2_stream *http2_connection_next(struct http2_connection *c)
{
    if (c->window <= 0 || !c->streams)
        return NULL;
    return http2_schedule_next(c->streams);
}

uint32_t http2_connection_window(const struct http2_connection *c,
                                 const struct http2_stream *stream)
{
    const int32_t least = c->window < stream->window ? c->window : stream->window;
    return least > 0 ? (uint32_t)least : 0;
}

uint32_t http2_connection_allows(const struct http2_connection *c,
                                 const struct http2_stream *stream)
{
    const uint32_t window = http2_connection_window(c, stream);
    return window < HTTP2_PAYLOAD_MAX ? window : HTTP2_PAYLOAD_MAX;
}

void http2_connection_spend(struct http2_connection *c, struct http2_stream *stream, uint32_t bytes)
{
    c->window -= (int32_t)bytes;
    stream->window -= (int32_t)bytes;
    if (c->sent < HTTP2_RESET_BYTES)
        c->sent += bytes;
    uint32_t most = UINT32_MAX - 2 * bytes; /* both windows get the bytes back */
    c->unreturned = c->unreturned < most ? c->unreturned + 2 * bytes : UINT32_MAX;
    if (bytes >= HTTP2_SMALL_DATA)
        http2_control_refund_frames(c, HTTP2_CONTROL_SENT);
    else
        http2_control_spend_frames(c, 1);
    if (!stream->queued)
        return;
    http2_schedule_turn(c->streams, stream);
    if (stream->window <= 0)
        http2_schedule_remove(c->streams, stream);
}

/* Appends RST_STREAM and closes the stream. */
static void close_with_reset(struct http2_connection *c, struct buf *out,
                             struct http2_stream *stream, enum http2_error error)
{
    uint32_t age = (c->last_stream - stream->id) / 2;
    if (age < 64)
        c->reset |= UINT64_C(1) << age;
    http2_frame_add_reset(out, stream->id, error);
    http2_control_close(c, stream);
}

/* A complete answer is progress. */
static void refund_answer(struct http2_connection *c)
{
    http2_control_refund_frames(c, HTTP2_CONTROL_ANSWER);
    if (c->resets < HTTP2_RESETS_MAX)
        c->resets++;
}

void http2_connection_finish(struct http2_connection *c, struct http2_stream *stream)
{
    refund_answer(c);
    stream->answered = true;
    http2_connection_rest(c, stream);
}

void http2_connection_end(struct http2_connection *c, struct buf *out, struct http2_stream *stream)
{
    if (!stream->answered && stream->ended)
        refund_answer(c);
    else if (!stream->answered)
        http2_control_refund_frames(c, HTTP2_CONTROL_ANSWER);
    if (stream->ended)
        http2_control_close(c, stream);
    else
        close_with_reset(c, out, stream, HTTP2_NO_ERROR);
}

void http2_connection_reset(struct http2_connection *c, struct buf *out,
                            struct http2_stream *stream, enum http2_fault fault)
{
    close_with_reset(c, out, stream, http2_fault_error(fault));
    http2_control_spend_resets(c, 1);
}

/* ---- what arrives ---- */

static int note_failure(struct http2_connection *c, enum http2_fault fault)
{
    http2_control_fail(c, fault);
    return NOTHING;
}

/* A byte that differs from the preface ends the connection at once, so a preface that never ends
 * can only be a slow one. */
static int read_preface(struct http2_connection *c, struct span *in)
{
    struct span begins = span_first(*in, HTTP2_FRAME_PREFACE_BYTES);
    if (!span_starts(HTTP2_FRAME_PREFACE, begins))
        return note_failure(c, HTTP2_FAULT_PREFACE);
    if (begins.len < HTTP2_FRAME_PREFACE_BYTES)
        return HTTP2_MORE;
    *in = span_skip(*in, HTTP2_FRAME_PREFACE_BYTES);
    c->phase = HTTP2_CONTROL_OPEN;
    return NOTHING;
}

/* A frame of a request, HEADERS or DATA, has come on a closed stream. When the server has reset
 * the stream, the frame can have crossed that on the way. Otherwise the client has ended the stream
 * or skipped it, and may send no more. */
static bool tolerates_closed(struct http2_connection *c, uint32_t id, enum http2_fault if_skipped)
{
    enum http2_control_past past = http2_control_past_of(c, id);
    if (past == HTTP2_CONTROL_ENDED || past == HTTP2_CONTROL_SKIPPED) {
        http2_control_fail(c, past == HTTP2_CONTROL_ENDED ? HTTP2_FAULT_CLOSED_STREAM : if_skipped);
        return false;
    }
    http2_control_spend_frames(c, 1);
    return true;
}

/* The stream is refused or ignored: it and those below it are no longer idle, so their priorities
 * that came before count no more (RFC 9218 section 7.1). */
static void forget_early(struct http2_streams *streams, uint32_t id)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < streams->early_count; i++)
        if (streams->early[i].id > id)
            streams->early[kept++] = streams->early[i];
    streams->early_count = (uint8_t)kept;
}

/* The first HEADERS frame of a stream, which is above every earlier one. */
static int open_stream(struct http2_connection *c, const struct http2_block *block, struct buf *out,
                       struct http2_arrival *ret_arrival)
{
    uint32_t step = (block->stream + 1) / 2 - (c->last_stream + 1) / 2;
    c->opened = (step < 64 ? c->opened << step : 0) | 1;
    c->reset = step < 64 ? c->reset << step : 0;
    c->last_stream = block->stream;

    ret_arrival->block = block->fields;
    ret_arrival->end = block->ends;
    ret_arrival->fault = HTTP2_FAULT_NONE;
    if (__builtin_expect(c->finishing, 0)) {
        c->reset |= 1;
        forget_early(c->streams, block->stream);
        http2_control_spend_frames(c, 1);
        return HTTP2_DROP;
    }
    if (__builtin_expect(c->streams->open >= c->streams_most, 0)) {
        c->reset |= 1;
        forget_early(c->streams, block->stream);
        http2_frame_add_reset(out, block->stream, HTTP2_REFUSED_STREAM);
        http2_control_spend_resets(c, 1);
        ret_arrival->fault = HTTP2_FAULT_REFUSED;
        return HTTP2_DROP;
    }
    struct http2_stream *stream = http2_stream_open(c->streams, block->stream, c->initial_window);
    stream->ended = block->ends;
    ret_arrival->stream = stream;
    return HTTP2_REQUEST;
}

/* A later HEADERS frame of a stream: trailers, which must end it (RFC 9113 section 8.1). */
static int read_trailers(struct http2_connection *c, const struct http2_block *block,
                         struct buf *out, struct http2_arrival *ret_arrival)
{
    if (block->stream % 2 == 0)
        return note_failure(c, HTTP2_FAULT_STREAM_ORDER);

    struct http2_stream *stream = http2_stream_find(c->streams, block->stream);
    *ret_arrival = (struct http2_arrival){ .stream = stream, .block = block->fields };
    if (!stream)
        return tolerates_closed(c, block->stream, HTTP2_FAULT_STREAM_ORDER) ? HTTP2_DROP : NOTHING;
    enum http2_fault fault = HTTP2_FAULT_NONE;
    if (stream->ended)
        fault = HTTP2_FAULT_CLOSED_STREAM;
    else if (!block->ends)
        fault = HTTP2_FAULT_TRAILERS;
    if (fault != HTTP2_FAULT_NONE) {
        http2_connection_reset(c, out, stream, fault);
        ret_arrival->fault = (uint8_t)fault;
        return HTTP2_RESET;
    }
    stream->ended = true;
    ret_arrival->end = true;
    return HTTP2_TRAILERS;
}

static int read_headers(struct http2_connection *c, struct span *in, struct buf *out, char *joined,
                        struct http2_arrival *ret_arrival)
{
    struct http2_block block;
    enum http2_block_result result = http2_block_read(*in, joined, &block);
    if (result == HTTP2_BLOCK_MORE)
        return HTTP2_MORE;
    if (result == HTTP2_BLOCK_FAILED)
        return note_failure(c, (enum http2_fault)block.fault);
    *in = span_skip(*in, block.size);
    if (__builtin_expect(block.stream > c->last_stream && block.stream % 2 == 1, 1))
        return open_stream(c, &block, out, ret_arrival);
    return read_trailers(c, &block, out, ret_arrival);
}

static_assert(HTTP2_REFUND_LEAST + HTTP2_PAYLOAD_MAX <= HTTP2_WINDOW,
              "a client that respects the window, and one that does not, cannot be told apart");

/* Counts DATA, padding included, against a window of which `received` bytes are not refunded.
 * Refunds them when that is worth a frame. Returns the bytes that are not refunded then. */
static uint16_t charge_window(uint32_t received, uint32_t bytes, struct buf *out, uint32_t stream)
{
    received += bytes;
    if (received >= HTTP2_REFUND_LEAST) {
        http2_frame_add_window(out, stream, received);
        received = 0;
    }
    return (uint16_t)received;
}

/* A DATA frame whose head and padding length have been read. */
static int begin_data(struct http2_connection *c, struct http2_frame frame, struct buf *out,
                      struct http2_arrival *ret_arrival)
{
    c->received = charge_window(c->received, frame.length, out, 0);
    if (frame.stream > c->last_stream || frame.stream % 2 == 0)
        return note_failure(c, HTTP2_FAULT_IDLE_STREAM);
    struct http2_stream *stream = http2_stream_find(c->streams, frame.stream);
    if (!stream) {
        (void)tolerates_closed(c, frame.stream, HTTP2_FAULT_CLOSED_STREAM);
        return NOTHING;
    }
    bool ends = frame.flags & HTTP2_FRAME_END_STREAM;
    *ret_arrival = (struct http2_arrival){ .stream = stream };
    if (stream->ended) {
        ret_arrival->fault = HTTP2_FAULT_CLOSED_STREAM;
        http2_connection_reset(c, out, stream, HTTP2_FAULT_CLOSED_STREAM);
        return HTTP2_RESET;
    }
    if (!ends)
        stream->received = charge_window(stream->received, frame.length, out, frame.stream);
    if (c->payload_left >= HTTP2_SMALL_DATA)
        http2_control_refund_frames(c, HTTP2_CONTROL_RECEIVED);
    else if (!ends)
        http2_control_spend_frames(c, 1);

    if (c->payload_left > 0) {
        c->payload_place = (uint8_t)http2_stream_place(c->streams, stream);
        c->payload_ends = ends;
        return NOTHING;
    }
    stream->ended = ret_arrival->end = ends;
    return ends ? HTTP2_DATA : NOTHING;
}

static int read_data(struct http2_connection *c, struct http2_frame frame, struct span *in,
                     struct buf *out, struct http2_arrival *ret_arrival)
{
    unsigned padded = frame.flags & HTTP2_FRAME_PADDED ? 1 : 0;
    if (frame.stream == 0)
        return note_failure(c, HTTP2_FAULT_FRAME_STREAM);
    if (frame.length < padded)
        return note_failure(c, HTTP2_FAULT_FRAME_FORM);
    if (in->len < HTTP2_FRAME_HEAD + padded)
        return HTTP2_MORE;
    uint8_t padding = padded ? (uint8_t)in->at[HTTP2_FRAME_HEAD] : 0;
    if (frame.length - padded < padding)
        return note_failure(c, HTTP2_FAULT_PADDING);
    *in = span_skip(*in, HTTP2_FRAME_HEAD + padded);
    c->payload_left = frame.length - padded - padding;
    c->padding_left = padding;
    return begin_data(c, frame, out, ret_arrival);
}

/* Reads on in a DATA frame, or skips what is left of an unknown frame. */
static int read_payload(struct http2_connection *c, struct span *in,
                        struct http2_arrival *ret_arrival)
{
    if (c->payload_left == 0) {
        size_t count = in->len < c->padding_left ? in->len : c->padding_left;
        c->padding_left -= (uint8_t)count;
        *in = span_skip(*in, count);
        return NOTHING;
    }
    struct span data = span_first(*in, c->payload_left);
    c->payload_left -= (uint32_t)data.len;
    *in = span_skip(*in, data.len);
    if (c->payload_place == 0)
        return NOTHING;

    struct http2_stream *stream = &c->streams->stream[c->payload_place];
    bool end = c->payload_left == 0 && c->payload_ends;
    if (c->payload_left == 0)
        c->payload_place = 0;
    stream->ended = end;
    *ret_arrival = (struct http2_arrival){ .stream = stream, .data = data, .end = end };
    return HTTP2_DATA;
}

/* Frames of the other types. An unknown type is ignored (RFC 9113 section 5.5). */
static int read_other(struct http2_connection *c, struct http2_frame frame, struct span *in,
                      struct buf *out, struct http2_arrival *ret_arrival)
{
    if (frame.type == HTTP2_FRAME_PUSH_PROMISE)
        return note_failure(c, HTTP2_FAULT_PUSH);
    if (frame.type == HTTP2_FRAME_CONTINUATION)
        return note_failure(c, HTTP2_FAULT_BLOCK_ORDER);
    if (frame.type > HTTP2_FRAME_CONTINUATION && frame.type != HTTP2_FRAME_PRIORITY_UPDATE) {
        *in = span_skip(*in, HTTP2_FRAME_HEAD);
        c->payload_left = frame.length;
        http2_control_spend_frames(c, 1);
        return NOTHING;
    }
    enum http2_fault fault = http2_control_check(frame);
    if (fault != HTTP2_FAULT_NONE)
        return note_failure(c, fault);
    if (in->len < HTTP2_FRAME_HEAD + frame.length)
        return HTTP2_MORE;
    const char *payload = in->at + HTTP2_FRAME_HEAD;
    *in = span_skip(*in, HTTP2_FRAME_HEAD + frame.length);
    return http2_control_read(c, frame, payload, out, ret_arrival);
}

static int read_step(struct http2_connection *c, struct span *in, struct buf *out, char *joined,
                     struct http2_arrival *ret_arrival)
{
    if (c->payload_left > 0 || c->padding_left > 0)
        return read_payload(c, in, ret_arrival);
    if (__builtin_expect(c->phase == HTTP2_CONTROL_PREFACE, 0))
        return read_preface(c, in);
    if (in->len < HTTP2_FRAME_HEAD)
        return HTTP2_MORE;
    struct http2_frame frame = http2_frame_read(in->at);
    if (frame.length > HTTP2_PAYLOAD_MAX)
        return note_failure(c, HTTP2_FAULT_FRAME_LENGTH);
    if (__builtin_expect(!c->configured, 0) &&
        (frame.type != HTTP2_FRAME_SETTINGS || frame.flags & HTTP2_FRAME_ACK))
        return note_failure(c, HTTP2_FAULT_PREFACE);
    if (frame.type == HTTP2_FRAME_HEADERS)
        return read_headers(c, in, out, joined, ret_arrival);
    if (frame.type == HTTP2_FRAME_DATA)
        return read_data(c, frame, in, out, ret_arrival);
    return read_other(c, frame, in, out, ret_arrival);
}

enum http2_event http2_connection_read(struct http2_connection *c, struct span *in, struct buf *out,
                                       char *joined, struct http2_arrival *ret_arrival)
{
    for (;;) {
        if (__builtin_expect(c->phase >= HTTP2_CONTROL_FAILING, 0))
            return report_failure(c, in, out, ret_arrival);
        if (in->len == 0)
            return HTTP2_MORE;
        if (buf_room(out) < HTTP2_REPLY_ROOM)
            return HTTP2_FULL;
        int event = read_step(c, in, out, joined, ret_arrival);
        if (event != NOTHING && c->phase < HTTP2_CONTROL_FAILING)
            return (enum http2_event)event;
    }
}
