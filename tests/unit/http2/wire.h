/* SPDX-License-Identifier: MIT
 *
 * A client's side of an HTTP/2 connection, for tests: frames go to the server's end, and its
 * events and frames are kept. Every input ends at an unreadable page.
 */
#pragma once

#include "http2/connection.h"
#include "http2/frame.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { WIRE_EVENTS = 512, WIRE_KEPT = 128 * 1024, WIRE_SENT = 256 * 1024 };

/* One event. `stream` is 0 when the event has none. */
struct wire_event {
    enum http2_event kind;
    uint32_t stream, error;
    size_t block_len, data_len;
    enum http2_fault fault;
    bool end;
};

struct wire {
    struct http2_connection c;
    struct http2_streams streams;
    struct buf out;
    size_t out_at; /* the server's frames before it have been read */
    size_t kept_len;
    unsigned count;
    struct wire_event event[WIRE_EVENTS];
    char kept[WIRE_KEPT]; /* input that the server has not consumed */
    char sent[WIRE_SENT];
    char joined[HTTP2_BLOCK_MAX];
    char block[HTTP2_BLOCK_MAX]; /* the latest one */
};

/* A frame as a row of a table. */
struct wire_frame {
    uint8_t type, flags;
    uint32_t stream;
    struct span payload;
};

static inline void wire_note(struct wire *w, enum http2_event kind,
                             const struct http2_arrival *arrival)
{
    assert_true(w->count < WIRE_EVENTS);
    struct wire_event *event = &w->event[w->count++];
    *event = (struct wire_event){ .kind = kind };
    bool named = kind == HTTP2_REQUEST || kind == HTTP2_TRAILERS || kind == HTTP2_DATA ||
                 kind == HTTP2_RESET;
    if (named)
        event->stream = arrival->stream->id;
    event->block_len = arrival->block.len;
    if (arrival->block.len > 0)
        memcpy(w->block, arrival->block.at, arrival->block.len);
    event->data_len = arrival->data.len;
    event->error = arrival->error;
    event->fault = (enum http2_fault)arrival->fault;
    event->end = arrival->end;
}

/* Hands bytes to the server, and keeps its events. Returns the last: MORE, FULL or FAILED. */
static inline enum http2_event wire_feed(struct wire *w, struct span bytes)
{
    assert_true(w->kept_len + bytes.len <= WIRE_KEPT);
    if (bytes.len > 0)
        memcpy(w->kept + w->kept_len, bytes.at, bytes.len);
    struct guard guard;
    struct span all = guard_copy(&guard, span_of(w->kept, w->kept_len + bytes.len)), in = all;
    enum http2_event kind;
    do {
        struct http2_arrival arrival = { .stream = NULL };
        kind = http2_connection_read(&w->c, &in, &w->out, w->joined, &arrival);
        if (kind != HTTP2_MORE && kind != HTTP2_FULL)
            wire_note(w, kind, &arrival);
    } while (kind != HTTP2_MORE && kind != HTTP2_FULL && kind != HTTP2_FAILED);
    assert_ptr_equal(in.at + in.len, all.at + all.len);
    memmove(w->kept, w->kept + (all.len - in.len), in.len);
    w->kept_len = in.len;
    guard_done(&guard);
    return kind;
}

static inline enum http2_event wire_send(struct wire *w, uint8_t type, uint8_t flags,
                                         uint32_t stream, struct span payload)
{
    static char whole[HTTP2_FRAME_HEAD + 70000];
    assert_true(payload.len <= 70000);
    http2_frame_write(whole, (struct http2_frame){ .length = (uint32_t)payload.len,
                                                   .type = type,
                                                   .flags = flags,
                                                   .stream = stream });
    if (payload.len > 0)
        memcpy(whole + HTTP2_FRAME_HEAD, payload.at, payload.len);
    return wire_feed(w, span_of(whole, HTTP2_FRAME_HEAD + payload.len));
}

/* A frame whose payload is one number. */
static inline enum http2_event wire_send_u32(struct wire *w, uint8_t type, uint32_t stream,
                                             uint32_t number)
{
    char payload[4];
    http2_frame_write_u32(payload, number);
    return wire_send(w, type, 0, stream, span_of(payload, 4));
}

/* A SETTINGS frame with one setting. */
static inline enum http2_event wire_set(struct wire *w, unsigned setting, uint32_t value)
{
    char payload[6] = { (char)(setting >> 8), (char)setting };
    http2_frame_write_u32(payload + 2, value);
    return wire_send(w, HTTP2_FRAME_SETTINGS, 0, 0, span_of(payload, 6));
}

/* A request, with or without the end of its stream. */
static inline enum http2_event wire_request(struct wire *w, uint32_t stream, bool end)
{
    uint8_t flags = HTTP2_FRAME_END_HEADERS | (end ? HTTP2_FRAME_END_STREAM : 0);
    return wire_send(w, HTTP2_FRAME_HEADERS, flags, stream, SPAN("\x82\x87"));
}

/* The next frame that the server has sent. Fails when there is none. */
static inline struct http2_frame wire_read(struct wire *w, struct span *ret_payload)
{
    assert_true(w->out.len - w->out_at >= HTTP2_FRAME_HEAD);
    struct http2_frame frame = http2_frame_read(w->out.at + w->out_at);
    w->out_at += HTTP2_FRAME_HEAD;
    assert_true(w->out.len - w->out_at >= frame.length);
    if (ret_payload)
        *ret_payload = span_of(w->out.at + w->out_at, frame.length);
    w->out_at += frame.length;
    return frame;
}

static inline bool wire_has_sent(const struct wire *w)
{
    return w->out_at < w->out.len;
}

/* Forgets the events and what the server has sent. */
static inline void wire_forget(struct wire *w)
{
    w->count = 0;
    w->out.len = w->out_at = 0;
    assert_false(w->out.overflow);
}

/* A connection before its preface. */
static inline void wire_begin(struct wire *w)
{
    w->out = buf_over(w->sent, sizeof(w->sent));
    w->out_at = w->kept_len = w->count = 0;
    w->streams = (struct http2_streams){ .open = 0 };
    http2_connection_begin(&w->c, HTTP2_STREAMS_MAX, &w->out);
    w->c.streams = &w->streams;
}

/* A connection whose client has sent its preface and its settings. */
static inline void wire_open(struct wire *w)
{
    wire_begin(w);
    assert_int_equal(wire_feed(w, HTTP2_FRAME_PREFACE), HTTP2_MORE);
    assert_int_equal(wire_send(w, HTTP2_FRAME_SETTINGS, 0, 0, SPAN("")), HTTP2_MORE);
    wire_forget(w);
}

static inline struct http2_stream *wire_stream(struct wire *w, uint32_t id)
{
    struct http2_stream *stream = http2_stream_find(&w->streams, id);
    assert_non_null(stream);
    return stream;
}

/* The connection has failed: the server's last frame is GOAWAY. */
static inline void wire_assert_failed(struct wire *w, enum http2_fault fault, uint32_t error)
{
    struct span payload = SPAN("");
    struct http2_frame frame = { .type = 0 };
    assert_true(w->count > 0);
    assert_int_equal(w->event[w->count - 1].kind, HTTP2_FAILED);
    assert_int_equal(w->event[w->count - 1].fault, fault);
    while (wire_has_sent(w))
        frame = wire_read(w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_GOAWAY);
    assert_int_equal(http2_frame_read_u32(payload.at), w->c.last_stream);
    assert_int_equal(http2_frame_read_u32(payload.at + 4), error);
    assert_true(span_equal(span_skip(payload, 8), http2_fault_sentence(fault)));
}

/* The server has reset the stream, and the connection continues. */
static inline void wire_assert_reset(struct wire *w, uint32_t stream, enum http2_fault fault,
                                     uint32_t error)
{
    struct span payload;
    assert_true(w->count > 0);
    assert_int_equal(w->event[w->count - 1].kind, HTTP2_RESET);
    assert_int_equal(w->event[w->count - 1].stream, stream);
    assert_int_equal(w->event[w->count - 1].fault, fault);
    struct http2_frame frame = wire_read(w, &payload);
    assert_int_equal(frame.type, HTTP2_FRAME_RST_STREAM);
    assert_int_equal(frame.stream, stream);
    assert_int_equal(http2_frame_read_u32(payload.at), error);
    assert_false(wire_has_sent(w));
}
