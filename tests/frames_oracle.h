/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 connections beside those of nghttp2. A script, which is any bytes, becomes frames of a
 * client and answers of a server. weir and a server session of libnghttp2 get the same. After each
 * step they must have sent the same replies, and keep the same streams and windows. Where they
 * differ, the difference must be one that `explained` knows, and the script ends.
 *
 * Header blocks are valid here. Their decoding has a fuzz target of its own.
 */
#pragma once

#include "base/check.h"
#include "http2/connection.h"
#include "http2/frame.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

/* What a server has sent during one step. */
struct oracle_replies {
    bool fails;            /* GOAWAY with an error */
    uint32_t error;        /* its code */
    uint32_t reset_stream; /* 0: none */
    uint32_t reset_error;
    unsigned settings, pings; /* acknowledgements */
    uint32_t refunded[2];     /* of the connection, and of streams */
};

struct oracle {
    struct http2_connection c;
    struct http2_streams streams;
    struct buf out;
    nghttp2_session *peer;
    struct oracle_replies ours, theirs;
    struct http2_frame frame; /* the latest one that the client has sent */
    uint32_t highest;
    char payload[64]; /* its first bytes; all of them for SETTINGS */
    bool done;
    char sent[4096];
    char joined[HTTP2_BLOCK_MAX];
};

/* A script, read from its front. After its end it has zeros. */
struct oracle_script {
    const uint8_t *at, *end;
};

static inline unsigned oracle_byte(struct oracle_script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static inline void oracle_note_frame(struct oracle_replies *replies, struct http2_frame frame,
                                     const char *payload)
{
    bool ack = frame.flags & HTTP2_FRAME_ACK;
    if (frame.type == HTTP2_FRAME_GOAWAY && http2_frame_read_u32(payload + 4) != HTTP2_NO_ERROR) {
        replies->fails = true;
        replies->error = http2_frame_read_u32(payload + 4);
    }
    if (frame.type == HTTP2_FRAME_RST_STREAM) {
        replies->reset_stream = frame.stream;
        replies->reset_error = http2_frame_read_u32(payload);
    }
    replies->settings += frame.type == HTTP2_FRAME_SETTINGS && ack;
    replies->pings += frame.type == HTTP2_FRAME_PING && ack;
    if (frame.type == HTTP2_FRAME_WINDOW_UPDATE)
        replies->refunded[frame.stream != 0] += http2_frame_read_u32(payload);
}

static inline void oracle_note_replies(struct oracle_replies *replies, const char *at, size_t len)
{
    while (len > 0) {
        CHECK(len >= HTTP2_FRAME_HEAD);
        struct http2_frame frame = http2_frame_read(at);
        CHECK(len >= HTTP2_FRAME_HEAD + frame.length);
        oracle_note_frame(replies, frame, at + HTTP2_FRAME_HEAD);
        at += HTTP2_FRAME_HEAD + frame.length;
        len -= HTTP2_FRAME_HEAD + frame.length;
    }
}

static inline void oracle_collect(struct oracle *o)
{
    CHECK(!o->out.overflow);
    oracle_note_replies(&o->ours, o->out.at, o->out.len);
    o->out.len = 0;
    const uint8_t *at;
    for (ssize_t len; (len = nghttp2_session_mem_send(o->peer, &at)) > 0;) {
        /* A frame at a time, but for the head of a block. */
        oracle_note_replies(&o->theirs, (const char *)at, (size_t)len);
    }
}

static inline bool oracle_repeats_a_setting(const struct oracle *o)
{
    for (unsigned at = 0; at < o->frame.length; at += HTTP2_FRAME_SETTING_BYTES)
        for (unsigned before = 0; before < at; before += HTTP2_FRAME_SETTING_BYTES)
            if (memcmp(o->payload + before, o->payload + at, 2) == 0)
                return true;
    return false;
}

/* nghttp2 counts the length of the padding before the rest of a DATA frame. If this byte makes a
 * refund due, the rest is not in it. */
static inline bool oracle_refunds_at_padding(const struct oracle *o)
{
    if (o->frame.type != HTTP2_FRAME_DATA || !(o->frame.flags & HTTP2_FRAME_PADDED))
        return false;
    struct oracle_replies ours = o->ours;
    for (unsigned i = 0; i < 2; i++)
        if (ours.refunded[i] != o->theirs.refunded[i])
            ours.refunded[i] -= o->frame.length - 1;
    return memcmp(&ours, &o->theirs, sizeof(ours)) == 0;
}

/* Whether a difference is one of these. docs/decisions names them, with the reasons. */
static inline bool oracle_explained(const struct oracle *o)
{
    const struct oracle_replies *a = &o->ours, *b = &o->theirs;
    unsigned type = o->frame.type;
    bool on_block = type == HTTP2_FRAME_HEADERS || type == HTTP2_FRAME_CONTINUATION;
    /* nghttp2 fails the connection for some stream errors, with the same code. RFC 9113 section
     * 5.4.1 allows that. */
    if (a->reset_stream != 0 && b->fails && a->reset_error == b->error)
        return true;
    /* A frame has two errors, and each side reports another one. */
    if (a->fails && b->fails &&
        (a->error != HTTP2_FLOW_CONTROL_ERROR || type == HTTP2_FRAME_SETTINGS))
        return true;
    /* nghttp2 checks the last value of a setting only. RFC 9113 section 6.5.3 has each processed in
     * the order of the frame. */
    if (type == HTTP2_FRAME_SETTINGS && a->fails && !b->fails && oracle_repeats_a_setting(o))
        return true;
    /* RFC 9113 section 6.9.2 has a connection error; nghttp2 resets the stream. */
    if (type == HTTP2_FRAME_SETTINGS && a->error == HTTP2_FLOW_CONTROL_ERROR &&
        b->reset_error == HTTP2_FLOW_CONTROL_ERROR)
        return true;
    /* The order of header blocks is not checked: the oracle does not know messages. */
    if (on_block && a->reset_stream != 0 && a->reset_error == HTTP2_PROTOCOL_ERROR && !b->fails)
        return true;
    /* nghttp2 checks the last stream of a GOAWAY frame. The server opens no streams. */
    if (type == HTTP2_FRAME_GOAWAY && !a->fails && b->error == HTTP2_PROTOCOL_ERROR)
        return true;
    /* Without RFC 7540's priorities, nghttp2 ignores PRIORITY, also on stream 0. */
    if (type == HTTP2_FRAME_PRIORITY && a->fails && !b->fails)
        return true;
    /* nghttp2 accepts a PRIORITY_UPDATE frame for stream 0. RFC 9218 section 7.1 does not. */
    if (type == HTTP2_FRAME_PRIORITY_UPDATE && a->fails && a->error == HTTP2_PROTOCOL_ERROR)
        return true;
    if (oracle_refunds_at_padding(o))
        return true;
    /* nghttp2 ignores frames of requests on streams that the client has closed or skipped. */
    if (a->fails && !b->fails && (on_block || type == HTTP2_FRAME_DATA) &&
        a->error != HTTP2_FLOW_CONTROL_ERROR)
        return true;
    return false;
}

static inline bool oracle_same_streams(struct oracle *o)
{
    if (o->c.window != nghttp2_session_get_remote_window_size(o->peer))
        return false;
    for (uint32_t id = 1; id <= o->highest; id += 2) {
        nghttp2_stream *theirs = nghttp2_session_find_stream(o->peer, (int32_t)id);
        nghttp2_stream_proto_state state = theirs ? nghttp2_stream_get_state(theirs)
                                                  : NGHTTP2_STREAM_STATE_CLOSED;
        const struct http2_stream *ours = http2_stream_find(&o->streams, id);
        nghttp2_stream_proto_state expected = NGHTTP2_STREAM_STATE_CLOSED;
        if (ours)
            expected = ours->ended ? NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE
                                   : NGHTTP2_STREAM_STATE_OPEN;
        else if (id > o->c.last_stream || state == NGHTTP2_STREAM_STATE_IDLE)
            continue;
        if (state != expected)
            return false;
        if (ours &&
            ours->window != nghttp2_session_get_stream_remote_window_size(o->peer, (int32_t)id))
            return false;
    }
    return true;
}

static inline void oracle_show(const char *name, const struct oracle_replies *r)
{
    (void)fprintf(stderr,
                  "%s: fails %d error %u; reset %u error %u; settings %u pings %u; refunds %u %u\n",
                  name, r->fails, r->error, r->reset_stream, r->reset_error, r->settings, r->pings,
                  r->refunded[0], r->refunded[1]);
}

static inline void oracle_compare(struct oracle *o)
{
    oracle_collect(o);
    bool same = memcmp(&o->ours, &o->theirs, sizeof(o->ours)) == 0;
    if (same && !o->ours.fails)
        same = oracle_same_streams(o);
    if (!same && !oracle_explained(o)) {
        (void)fprintf(stderr, "frame type %u flags %x stream %u length %u, last stream %u\n",
                      o->frame.type, o->frame.flags, o->frame.stream, o->frame.length,
                      o->c.last_stream);
        for (unsigned i = 0; i < sizeof(o->payload); i++)
            (void)fprintf(stderr, "%02x ", (unsigned char)o->payload[i]);
        (void)fprintf(stderr, "\n");
        oracle_show("weir", &o->ours);
        oracle_show("nghttp2", &o->theirs);
        CHECK(same); /* weir and nghttp2 differ */
    }
    /* After GOAWAY and without streams, nghttp2 sends nothing more. */
    o->done = !same || o->ours.fails || o->c.client_goes;
    memset(&o->ours, 0, sizeof(o->ours));
    memset(&o->theirs, 0, sizeof(o->theirs));
}

/* Hands weir the bytes in two pieces, and nghttp2 in one. */
static inline void oracle_feed(struct oracle *o, struct span bytes, size_t split)
{
    size_t begin = 0, ends[2] = { split % (bytes.len + 1), bytes.len };
    enum http2_event event = HTTP2_MORE;
    for (int piece = 0; piece < 2; piece++) {
        size_t len = ends[piece] - begin;
        char *copy = malloc(len > 0 ? len : 1); /* exact, for sanitizers */
        CHECK(copy);
        memcpy(copy, bytes.at + begin, len);
        struct span in = span_of(copy, len);
        struct http2_arrival arrival;
        do
            event = http2_connection_read(&o->c, &in, &o->out, o->joined, &arrival);
        while (event != HTTP2_MORE && event != HTTP2_FAILED);
        begin = ends[piece] - in.len;
        free(copy);
    }
    CHECK(begin == bytes.len);
    ssize_t read = nghttp2_session_mem_recv(o->peer, (const uint8_t *)bytes.at, bytes.len);
    if (read < 0) {
        o->theirs.fails = true;
        o->theirs.error = (uint32_t)-read;
    }
}

/* Appends one frame to `wire`. */
static inline void oracle_add(struct buf *wire, struct http2_frame frame, const char *payload)
{
    http2_frame_add(wire, frame);
    buf_add(wire, span_of(payload, frame.length));
    CHECK(!wire->overflow);
}

/* Sends what is in `wire`. `frame` is the first one. */
static inline void oracle_send_wire(struct oracle *o, struct oracle_script *script,
                                    const struct buf *wire, struct http2_frame frame)
{
    o->frame = frame;
    memset(o->payload, 0, sizeof(o->payload));
    const size_t len = wire->len - HTTP2_FRAME_HEAD;
    memcpy(o->payload, wire->at + HTTP2_FRAME_HEAD,
           len < sizeof(o->payload) ? len : sizeof(o->payload));
    if (frame.stream % 2 == 1 && frame.stream < 1000 && frame.stream > o->highest)
        o->highest = frame.stream;
    oracle_feed(o, buf_span(wire), oracle_byte(script) * 7);
    oracle_compare(o);
}

static inline void oracle_send(struct oracle *o, struct oracle_script *script,
                               struct http2_frame frame, const char *payload)
{
    static char whole[HTTP2_FRAME_HEAD + HTTP2_PAYLOAD_MAX + 16];
    struct buf wire = buf_over(whole, sizeof(whole));
    oracle_add(&wire, frame, payload);
    oracle_send_wire(o, script, &wire, frame);
}

/* A stream: mostly an open one, at times a new one, one of the latest, or any small number. The
 * client has not ended it, where there is such a stream and `ended` is false. */
static inline uint32_t oracle_stream(const struct oracle *o, struct oracle_script *script,
                                     bool ended)
{
    unsigned choice = oracle_byte(script);
    uint32_t last = o->c.last_stream;
    if (choice >= 254)
        return choice - 254;
    if (choice >= 248)
        return last == 0 ? 1 : last + 2;
    if (choice < 240 && o->streams.open > 0) {
        unsigned place = choice % o->streams.highest, left = o->streams.highest;
        const struct http2_stream *stream;
        do
            stream = &o->streams.stream[place++ % o->streams.highest + 1];
        while (!stream->open || (stream->ended && !ended && left-- > 0));
        return stream->id;
    }
    return last > 2 * (choice % 8) ? last - 2 * (choice % 8) : last;
}

static const char oracle_block[] = "\x82\x86\x84\x01\x01"
                                   "a\x00\x01x\x01y";

/* A block, with padding or RFC 7540's priority, and in up to three frames. */
static inline void oracle_send_block(struct oracle *o, struct oracle_script *script)
{
    unsigned choice = oracle_byte(script), pieces = choice % 3 + 1;
    uint32_t stream = o->c.last_stream == 0 ? 1 : o->c.last_stream + 2;
    if (oracle_byte(script) >= 236)
        stream = oracle_stream(o, script, false);
    char payload[64] = { 0 };
    size_t front = 0, padding = 0;
    uint8_t flags = choice & 0x80 ? HTTP2_FRAME_END_STREAM : 0;
    if (choice & 0x40) {
        flags |= HTTP2_FRAME_PADDED;
        padding = oracle_byte(script) % 8;
        payload[front++] = (char)padding;
    }
    if (choice & 0x20) {
        flags |= HTTP2_FRAME_PRIORITISED;
        front += 5;
        payload[front - 1] = 15;
    }
    size_t len = sizeof(oracle_block) - 1, first = pieces == 1 ? len : oracle_byte(script) % len;
    memcpy(payload + front, oracle_block, first);
    if (pieces == 1)
        flags |= HTTP2_FRAME_END_HEADERS;
    char whole[256];
    struct buf wire = buf_over(whole, sizeof(whole));
    struct http2_frame headers = { .length = (uint32_t)(front + first + padding),
                                   .type = HTTP2_FRAME_HEADERS,
                                   .flags = flags,
                                   .stream = stream };
    oracle_add(&wire, headers, payload);
    for (unsigned piece = 2; piece <= pieces; piece++) {
        size_t end = piece == pieces ? len : first + (len - first) / 2;
        oracle_add(&wire,
                   (struct http2_frame){ .length = (uint32_t)(end - first),
                                         .type = HTTP2_FRAME_CONTINUATION,
                                         .flags = piece == pieces ? HTTP2_FRAME_END_HEADERS : 0,
                                         .stream = stream },
                   oracle_block + first);
        first = end;
    }
    oracle_send_wire(o, script, &wire, headers);
}

static inline void oracle_send_data(struct oracle *o, struct oracle_script *script)
{
    static const char zeros[HTTP2_PAYLOAD_MAX];
    char padded[300] = { 0 };
    unsigned choice = oracle_byte(script), len = oracle_byte(script);
    struct http2_frame frame = { .type = HTTP2_FRAME_DATA,
                                 .stream = oracle_stream(o, script, false) };
    const struct http2_stream *stream = http2_stream_find(&o->streams, frame.stream);
    if ((!stream || stream->ended) && choice < 230) {
        oracle_send_block(o, script);
        return;
    }
    frame.flags = choice & 1 ? HTTP2_FRAME_END_STREAM : 0;
    frame.length = choice & 2 ? len : len * 64;
    if (choice & 4) {
        frame.flags |= HTTP2_FRAME_PADDED;
        frame.length = len;
        padded[0] = (char)(oracle_byte(script) % (len + 1));
    }
    oracle_send(o, script, frame, choice & 4 ? padded : zeros);
}

/* A frame of any other type, often with the length that the type has. */
static inline void oracle_send_other(struct oracle *o, struct oracle_script *script)
{
    static const uint8_t types[16] = { 2, 3, 4, 4, 6, 8, 8, 8, 8, 8, 0x10, 0x42, 6, 5, 7, 9 };
    static const uint8_t lengths[16] = { 5, 4, 6, 6, 8, 4, 4, 4, 4, 4, 8, 9, 8, 4, 8, 0 };
    char payload[64];
    unsigned choice = oracle_byte(script) % 16;
    if (choice > 12 && oracle_byte(script) < 230)
        choice = 5;
    uint32_t target = oracle_stream(o, script, true);
    struct http2_frame frame = { .type = types[choice], .length = lengths[choice] };
    unsigned odd = oracle_byte(script);
    if (odd >= 248)
        frame.length = odd % 32;
    bool streams = frame.type == 2 || frame.type == 3 || frame.type == 8 || odd % 32 == 31;
    frame.stream = streams ? target : 0;
    frame.flags = (uint8_t)(frame.type == 4 || frame.type == 6 ? odd & 1 : oracle_byte(script));
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (char)(i < 4 && odd % 4 != 0 ? 0 : oracle_byte(script));
    if (frame.type == HTTP2_FRAME_SETTINGS) {
        static const uint8_t settings[] = { 0, 1, 2, 3, 4, 4, 5, 6, 9, 10 }; /* not RFC 8441's */
        payload[1] = (char)oracle_byte(script);
        for (size_t at = 0; at < frame.length; at += HTTP2_FRAME_SETTING_BYTES) {
            payload[at] = 0;
            payload[at + 1] = (char)settings[(uint8_t)payload[at + 1] % sizeof(settings)];
        }
        if (frame.flags & 1 && odd < 240)
            frame.length = 0;
    }
    if (frame.type == HTTP2_FRAME_WINDOW_UPDATE && odd >= 8)
        payload[3] |= 1;
    if (frame.type == HTTP2_FRAME_PRIORITY_UPDATE) {
        http2_frame_write_u32(payload, target);
        memcpy(payload + 4, "u=1,", 4);
        payload[6] = (char)('0' + odd % 8);
        frame.length = 7;
    }
    oracle_send(o, script, frame, payload);
}

/* The server answers a stream, or resets it. */
static inline void oracle_serve(struct oracle *o, struct oracle_script *script)
{
    struct http2_stream *stream = http2_stream_find(&o->streams, oracle_stream(o, script, true));
    if (!stream)
        return;
    int32_t id = (int32_t)stream->id;
    bool ended = stream->ended;
    o->frame = (struct http2_frame){ .type = 0xff, .stream = stream->id };
    if (oracle_byte(script) & 1) {
        http2_connection_reset(&o->c, &o->out, stream, HTTP2_FAULT_MALFORMED);
        CHECK(nghttp2_submit_rst_stream(o->peer, 0, id, HTTP2_PROTOCOL_ERROR) == 0);
    } else {
        static uint8_t name[] = ":status", value[] = "200";
        nghttp2_nv field = { name, value, 7, 3, NGHTTP2_NV_FLAG_NONE };
        http2_connection_end(&o->c, &o->out, stream);
        CHECK(nghttp2_submit_response(o->peer, id, &field, 1, NULL) == 0);
        if (!ended)
            CHECK(nghttp2_submit_rst_stream(o->peer, 0, id, HTTP2_NO_ERROR) == 0);
    }
    oracle_compare(o);
}

static inline void oracle_begin(struct oracle *o)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    memset(o, 0, sizeof(*o));
    o->out = buf_over(o->sent, sizeof(o->sent));
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    CHECK(nghttp2_session_server_new2(&o->peer, callbacks, NULL, option) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP2_STREAMS_MAX },
        { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
    };
    CHECK(nghttp2_submit_settings(o->peer, 0, settings, 2) == 0);
    http2_connection_begin(&o->c, HTTP2_STREAMS_MAX, &o->out);
    o->c.streams = &o->streams;
    oracle_collect(o);
    memset(&o->ours, 0, sizeof(o->ours));
    memset(&o->theirs, 0, sizeof(o->theirs));
}

/* Plays a script. Ends the process where the two servers differ. Returns how many steps they
 * agreed on. */
static inline unsigned oracle_play(const uint8_t *data, size_t size)
{
    static struct oracle o;
    struct oracle_script script = { data, data + size };
    unsigned steps = 0;
    oracle_begin(&o);
    oracle_feed(&o, HTTP2_FRAME_PREFACE, oracle_byte(&script));
    if (oracle_byte(&script) < 250)
        oracle_send(&o, &script, (struct http2_frame){ .type = HTTP2_FRAME_SETTINGS }, "");
    for (; script.at < script.end && steps < 80 && !o.done; steps++) {
        unsigned choice = oracle_byte(&script);
        if (choice < 70 || o.c.last_stream == 0)
            oracle_send_block(&o, &script);
        else if (choice < 120)
            oracle_send_data(&o, &script);
        else if (choice < 160)
            oracle_serve(&o, &script);
        else
            oracle_send_other(&o, &script);
    }
    nghttp2_session_del(o.peer);
    return steps;
}
