/* SPDX-License-Identifier: MIT */
#include "http2/control.h"

#include "http2/schedule.h"

enum { WINDOW_LARGEST = 0x7fffffff, FRAME_SIZE_LARGEST = 0xffffff };

const char http2_control_drain_ping[8] = { 'd', 'r', 'a', 'i', 'n', 'i', 'n', 'g' };

/* ---- budgets and states ---- */

void http2_control_fail(struct http2_connection *c, enum http2_fault fault)
{
    if (c->phase >= HTTP2_CONTROL_FAILING)
        return;
    c->phase = HTTP2_CONTROL_FAILING;
    c->fault = (uint8_t)fault;
}

void http2_control_spend_frames(struct http2_connection *c, int cost)
{
    c->control = (int16_t)(c->control - cost);
    if (c->control < 0)
        http2_control_fail(c, HTTP2_FAULT_CONTROL);
}

void http2_control_spend_resets(struct http2_connection *c, int cost)
{
    c->resets = (int16_t)(c->resets - cost);
    if (c->resets < 0)
        http2_control_fail(c, HTTP2_FAULT_RESETS);
}

void http2_control_refund_frames(struct http2_connection *c, int refund)
{
    int left = c->control + refund;
    c->control = (int16_t)(left < HTTP2_CONTROL_MAX ? left : HTTP2_CONTROL_MAX);
}

enum http2_control_past http2_control_past_of(const struct http2_connection *c, uint32_t id)
{
    uint32_t age = (c->last_stream - id) / 2;
    if (age >= 64)
        return HTTP2_CONTROL_FORGOTTEN;
    if (c->reset >> age & 1)
        return HTTP2_CONTROL_RESET;
    return c->opened >> age & 1 ? HTTP2_CONTROL_ENDED : HTTP2_CONTROL_SKIPPED;
}

void http2_control_close(struct http2_connection *c, struct http2_stream *stream)
{
    if (c->payload_place == http2_stream_place(c->streams, stream))
        c->payload_place = 0;
    http2_stream_close(c->streams, stream);
}

void http2_control_finish(struct http2_connection *c, struct buf *out)
{
    c->finishing = true;
    c->final_stream = c->last_stream;
    http2_frame_add_goaway(out, c->final_stream, HTTP2_NO_ERROR, SPAN(""));
}

/* ---- frames ---- */

static int note_failure(struct http2_connection *c, enum http2_fault fault)
{
    http2_control_fail(c, fault);
    return HTTP2_CONTROL_NOTHING;
}

static bool stream_is_idle(const struct http2_connection *c, uint32_t id)
{
    return id > c->last_stream || id % 2 == 0;
}

static enum http2_fault check_settings(struct http2_frame frame)
{
    if (frame.stream != 0)
        return HTTP2_FAULT_FRAME_STREAM;
    if (frame.length % HTTP2_FRAME_SETTING_BYTES != 0)
        return HTTP2_FAULT_FRAME_FORM;
    if (frame.flags & HTTP2_FRAME_ACK && frame.length != 0)
        return HTTP2_FAULT_FRAME_FORM;
    if (frame.length > HTTP2_SETTINGS_MAX * HTTP2_FRAME_SETTING_BYTES)
        return HTTP2_FAULT_SETTINGS_COUNT;
    return HTTP2_FAULT_NONE;
}

enum http2_fault http2_control_check(struct http2_frame frame)
{
    static const struct {
        uint8_t length;
        bool longer; /* the payload may be longer */
        bool stream; /* the frame belongs to a stream */
        bool either; /* or to the connection */
    } forms[] = {
        [HTTP2_FRAME_PRIORITY] = { .length = 0, .longer = true, .stream = true },
        [HTTP2_FRAME_RST_STREAM] = { .length = 4, .stream = true },
        [HTTP2_FRAME_PING] = { .length = 8 },
        [HTTP2_FRAME_GOAWAY] = { .length = 8, .longer = true },
        [HTTP2_FRAME_WINDOW_UPDATE] = { .length = 4, .either = true },
        [HTTP2_FRAME_PRIORITY_UPDATE] = { .length = 4, .longer = true },
    };
    if (frame.type == HTTP2_FRAME_SETTINGS)
        return check_settings(frame);
    unsigned type = frame.type;
    if (!forms[type].either && (frame.stream != 0) != forms[type].stream)
        return HTTP2_FAULT_FRAME_STREAM;
    if (frame.length < forms[type].length ||
        (frame.length > forms[type].length && !forms[type].longer))
        return HTTP2_FAULT_FRAME_FORM;
    return HTTP2_FAULT_NONE;
}

/* A stream error: resets the stream. */
static int reset_stream(struct http2_connection *c, struct buf *out, struct http2_stream *stream,
                        enum http2_fault fault, struct http2_arrival *ret_arrival)
{
    http2_connection_reset(c, out, stream, fault);
    *ret_arrival = (struct http2_arrival){ .stream = stream, .fault = (uint8_t)fault };
    return HTTP2_RESET;
}

/* PRIORITY is deprecated: only its length is checked (RFC 9113 section 6.3). A stream that is not
 * open cannot be reset, so there a wrong length is a connection error. */
static int read_priority(struct http2_connection *c, struct http2_frame frame, struct buf *out,
                         struct http2_arrival *ret_arrival)
{
    if (frame.length == 5)
        return HTTP2_CONTROL_NOTHING;
    struct http2_stream *stream = http2_stream_find(c->streams, frame.stream);
    if (!stream)
        return note_failure(c, HTTP2_FAULT_FRAME_FORM);
    return reset_stream(c, out, stream, HTTP2_FAULT_FRAME_FORM, ret_arrival);
}

/* Rapid Reset (CVE-2023-44487) is a flood of these. A stream whose answer was complete has
 * refunded 1. When the client resets it later, that was no progress: the reset costs 2. */
static int read_reset(struct http2_connection *c, struct http2_frame frame, const char *payload,
                      struct http2_arrival *ret_arrival)
{
    if (stream_is_idle(c, frame.stream))
        return note_failure(c, HTTP2_FAULT_IDLE_STREAM);
    struct http2_stream *stream = http2_stream_find(c->streams, frame.stream);
    if (!stream) {
        if (http2_control_past_of(c, frame.stream) == HTTP2_CONTROL_ENDED)
            http2_control_spend_resets(c, 2);
        return HTTP2_CONTROL_NOTHING;
    }
    http2_control_close(c, stream);
    http2_control_spend_resets(c, c->sent < HTTP2_RESET_BYTES);
    c->sent = 0;
    *ret_arrival =
        (struct http2_arrival){ .stream = stream, .error = http2_frame_read_u32(payload) };
    return HTTP2_RESET;
}

/* The stream can send again, or no longer: its window has changed. */
static void update_schedule(struct http2_streams *streams, struct http2_stream *stream)
{
    bool ready = stream->wants && stream->window > 0;
    if (ready && !stream->queued)
        http2_schedule_add(streams, stream);
    if (!ready)
        http2_schedule_remove(streams, stream);
}

static int read_window(struct http2_connection *c, struct http2_frame frame, const char *payload,
                       struct buf *out, struct http2_arrival *ret_arrival)
{
    uint32_t bytes = http2_frame_read_u32(payload) & WINDOW_LARGEST;
    struct http2_stream *stream = NULL;
    if (frame.stream != 0) {
        if (stream_is_idle(c, frame.stream))
            return note_failure(c, HTTP2_FAULT_IDLE_STREAM);
        stream = http2_stream_find(c->streams, frame.stream);
        if (!stream)
            return HTTP2_CONTROL_NOTHING;
    }
    int32_t *window = stream ? &stream->window : &c->window;
    enum http2_fault fault = HTTP2_FAULT_NONE;
    if (bytes == 0)
        fault = HTTP2_FAULT_WINDOW_ZERO;
    else if ((int64_t)*window + bytes > WINDOW_LARGEST)
        fault = HTTP2_FAULT_WINDOW_OVERFLOW;
    if (fault != HTTP2_FAULT_NONE)
        return stream ? reset_stream(c, out, stream, fault, ret_arrival) : note_failure(c, fault);
    *window += (int32_t)bytes;
    if (stream)
        update_schedule(c->streams, stream);
    return HTTP2_CONTROL_NOTHING;
}

/* Moves the windows of all open streams, which can make them negative (RFC 9113 section 6.9.2). */
static enum http2_fault apply_initial_window(struct http2_connection *c, int32_t initial)
{
    struct http2_streams *streams = c->streams;
    int64_t more = (int64_t)initial - c->initial_window;
    if (more == 0)
        return HTTP2_FAULT_NONE;

    http2_control_spend_frames(c, streams->open);
    c->initial_window = initial;
    for (unsigned place = 1; place <= streams->highest; place++) {
        struct http2_stream *stream = &streams->stream[place];
        if (!stream->open)
            continue;
        if (stream->window + more > WINDOW_LARGEST)
            return HTTP2_FAULT_SETTING_WINDOW;
        stream->window = (int32_t)(stream->window + more);
        update_schedule(streams, stream);
    }
    return HTTP2_FAULT_NONE;
}

/* Applies one setting. The server needs none of the others: it has no dynamic table, pushes
 * nothing, and sends no frame above the least value of MAX_FRAME_SIZE. */
static enum http2_fault apply_setting(struct http2_connection *c, unsigned setting, uint32_t value,
                                      int32_t *initial_window)
{
    switch (setting) {
    case HTTP2_FRAME_ENABLE_PUSH:
        return value > 1 ? HTTP2_FAULT_SETTING : HTTP2_FAULT_NONE;
    case HTTP2_FRAME_INITIAL_WINDOW_SIZE:
        if (value > WINDOW_LARGEST)
            return HTTP2_FAULT_SETTING_WINDOW;
        *initial_window = (int32_t)value;
        return HTTP2_FAULT_NONE;
    case HTTP2_FRAME_MAX_FRAME_SIZE:
        return value < HTTP2_PAYLOAD_MAX || value > FRAME_SIZE_LARGEST ? HTTP2_FAULT_SETTING
                                                                       : HTTP2_FAULT_NONE;
    case HTTP2_FRAME_NO_RFC7540_PRIORITIES:
        if (value > 1 || (c->configured && value != c->unprioritised))
            return HTTP2_FAULT_SETTING;
        c->unprioritised = value != 0;
        return HTTP2_FAULT_NONE;
    default:
        return HTTP2_FAULT_NONE;
    }
}

/* Settings are applied in their order, so the last value of a setting counts (RFC 9113 section
 * 6.5.3). */
static int read_settings(struct http2_connection *c, struct http2_frame frame, const char *payload,
                         struct buf *out)
{
    if (frame.flags & HTTP2_FRAME_ACK) {
        if (c->acknowledged)
            return note_failure(c, HTTP2_FAULT_SETTINGS_ACK);
        c->acknowledged = true;
        return HTTP2_CONTROL_NOTHING;
    }
    int32_t initial_window = c->initial_window;
    enum http2_fault fault = HTTP2_FAULT_NONE;
    for (uint32_t at = 0; at < frame.length && fault == HTTP2_FAULT_NONE;
         at += HTTP2_FRAME_SETTING_BYTES) {
        unsigned setting = (uint8_t)payload[at] << 8 | (uint8_t)payload[at + 1];
        fault = apply_setting(c, setting, http2_frame_read_u32(payload + at + 2), &initial_window);
    }
    if (fault == HTTP2_FAULT_NONE)
        fault = apply_initial_window(c, initial_window);
    if (fault != HTTP2_FAULT_NONE)
        return note_failure(c, fault);
    c->configured = true;
    http2_frame_add(out,
                    (struct http2_frame){ .type = HTTP2_FRAME_SETTINGS, .flags = HTTP2_FRAME_ACK });
    return HTTP2_CONTROL_NOTHING;
}

static int read_ping(struct http2_connection *c, struct http2_frame frame, const char *payload,
                     struct buf *out)
{
    if (!(frame.flags & HTTP2_FRAME_ACK))
        http2_frame_add_ping(out, payload, true);
    else if (c->draining && !c->finishing &&
             memcmp(payload, http2_control_drain_ping, sizeof(http2_control_drain_ping)) == 0)
        http2_control_finish(c, out);
    return HTTP2_CONTROL_NOTHING;
}

static int read_goaway(struct http2_connection *c, const char *payload,
                       struct http2_arrival *ret_arrival)
{
    c->client_goes = true;
    *ret_arrival = (struct http2_arrival){ .error = http2_frame_read_u32(payload + 4) };
    return HTTP2_GOAWAY;
}

/* RFC 9218 section 7.1. Streams with even numbers are pushed ones, and all of them are idle. A
 * value that is no dictionary is ignored, as in a field. */
static int read_priority_update(struct http2_connection *c, struct http2_frame frame,
                                const char *payload)
{
    uint32_t id = http2_frame_read_u32(payload) & 0x7fffffff;
    struct http2_priority priority;
    if (id % 2 == 0)
        return note_failure(c, HTTP2_FAULT_PRIORITY_UPDATE);
    if (!http2_priority_read(span_of(payload + 4, frame.length - 4), &priority))
        return HTTP2_CONTROL_NOTHING;
    if (id > c->last_stream)
        return http2_stream_keep_early(c->streams, c->streams_most, id, priority)
                   ? HTTP2_CONTROL_NOTHING
                   : note_failure(c, HTTP2_FAULT_PRIORITY_UPDATE);
    struct http2_stream *stream = http2_stream_find(c->streams, id);
    if (stream) {
        stream->updated = true;
        http2_stream_prioritise(c->streams, stream, priority);
    }
    return HTTP2_CONTROL_NOTHING;
}

/* Whether a WINDOW_UPDATE returns bytes that were sent, in a step that is not tiny. Clients return
 * what they read, when they read it: after a pause, thousands of frames without DATA between
 * them. */
static bool returns_window(struct http2_connection *c, const char *payload)
{
    uint32_t bytes = http2_frame_read_u32(payload) & WINDOW_LARGEST;
    if (bytes < HTTP2_SMALL_DATA || bytes > c->unreturned)
        return false;
    c->unreturned -= bytes;
    return true;
}

int http2_control_read(struct http2_connection *c, struct http2_frame frame, const char *payload,
                       struct buf *out, struct http2_arrival *ret_arrival)
{
    if (frame.type != HTTP2_FRAME_WINDOW_UPDATE || !returns_window(c, payload))
        http2_control_spend_frames(c, 1);
    switch (frame.type) {
    case HTTP2_FRAME_PRIORITY:
        return read_priority(c, frame, out, ret_arrival);
    case HTTP2_FRAME_RST_STREAM:
        return read_reset(c, frame, payload, ret_arrival);
    case HTTP2_FRAME_SETTINGS:
        return read_settings(c, frame, payload, out);
    case HTTP2_FRAME_PING:
        return read_ping(c, frame, payload, out);
    case HTTP2_FRAME_GOAWAY:
        return read_goaway(c, payload, ret_arrival);
    case HTTP2_FRAME_WINDOW_UPDATE:
        return read_window(c, frame, payload, out, ret_arrival);
    default:
        return read_priority_update(c, frame, payload);
    }
}
