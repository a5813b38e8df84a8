/* SPDX-License-Identifier: MIT
 *
 * A session that speaks HTTP/2, driven as a model drives it, with a clock and a client of the
 * test's own.
 */
#pragma once

#include "session/http2.h"

#include "http2/client.h"
#include "http2/frame.h"
#include "world.h"

#include <malloc.h>

enum { LARGEST = 0x7fffffff };

static inline int make_http2_world(void **state)
{
    (void)state;
    if (make_world() < 0)
        return -1;
    world.shared.h2c = true;
    world.shared.server_field = SPAN("Server: weir\r\n");
    if (start_world() < 0)
        return -1;
    settle("/middle.bin");
    settle("/big.bin");
    return 0;
}

static inline int end_http2_world(void **state)
{
    (void)state;
    return end_world();
}

/* ---- a client ---- */

static char sending[1 << 20], received[8 << 20];

static struct {
    struct session s;
    unsigned want;
    struct buf out; /* what it sends next */
    struct buf in;  /* what it has received */
    size_t at;      /* the next frame of it */
    uint32_t next_stream;
} client;

/* Sends what is in client.out, `step` bytes at a time. */
static inline void send_in_steps(size_t step)
{
    for (size_t at = 0; at < client.out.len; at += step) {
        size_t len = client.out.len - at < step ? client.out.len - at : step;
        assert_true(session_room(&client.s) >= len);
        client.want = session_feed(&client.s, span_of(client.out.at + at, len), world.now_ns);
    }
    client.out.len = 0;
}

static inline void send_frames(void)
{
    send_in_steps(client.out.len);
}

/* Receives what the session sends, at most `most` bytes. */
static inline void receive(size_t most)
{
    while (client.want & SESSION_WRITE && most > 0) {
        struct session_out out = session_output(&client.s);
        assert_int_equal(out.file_len, 0);
        assert_true(out.count > 0);
        const struct span part = span_first(out.piece[0], most);
        buf_add(&client.in, part);
        assert_false(client.in.overflow);
        most -= part.len;
        client.want = session_sent(&client.s, part.len, world.now_ns);
    }
}

static inline void add_frame(unsigned type, unsigned flags, uint32_t stream, struct span payload)
{
    http2_frame_add(&client.out, (struct http2_frame){ .length = (uint32_t)payload.len,
                                                       .stream = stream,
                                                       .type = (uint8_t)type,
                                                       .flags = (uint8_t)flags });
    buf_add(&client.out, payload);
}

static inline uint32_t add_request(const char *head, bool end)
{
    char bytes[2048];
    struct buf block = buf_over(bytes, sizeof(bytes));
    (void)http2_client_add_request(&block, span_text(head), SPAN("http"), HTTP2_CLIENT_PLAIN);
    const uint32_t stream = client.next_stream;
    client.next_stream += 2;
    add_frame(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS | (end ? HTTP2_FRAME_END_STREAM : 0),
              stream, buf_span(&block));
    return stream;
}

#define HEAD_OF(method, path) method " " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static inline uint32_t add_get(const char *path)
{
    char head[256];
    (void)snprintf(head, sizeof(head), HEAD_OF("GET", "%s"), path);
    return add_request(head, true);
}

/* A client whose windows have `window` bytes for each stream, and as many as possible for all. */
static inline void begin(uint32_t window)
{
    session_open(&client.s, &world.thread, (struct session_origin){ .peer.family = 4 },
                 world.now_ns);
    client.out = buf_over(sending, sizeof(sending));
    client.in = buf_over(received, sizeof(received));
    client.at = 0;
    client.next_stream = 1;
    buf_add(&client.out, HTTP2_FRAME_PREFACE);
    http2_frame_add(&client.out, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                                       .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(&client.out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, window);
    http2_frame_add_window(&client.out, 0, LARGEST - HTTP2_WINDOW);
}

static inline void end(void)
{
    session_close(&client.s);
}

/* The next frame that the client has received. False: there is none. */
static inline bool next_frame(struct http2_frame *ret_frame, struct span *ret_payload)
{
    if (client.in.len - client.at < HTTP2_FRAME_HEAD)
        return false;
    *ret_frame = http2_frame_read(client.in.at + client.at);
    assert_true(client.in.len - client.at >= HTTP2_FRAME_HEAD + ret_frame->length);
    *ret_payload = span_of(client.in.at + client.at + HTTP2_FRAME_HEAD, ret_frame->length);
    client.at += HTTP2_FRAME_HEAD + ret_frame->length;
    return true;
}

/* What the client has received since the last call, of one stream or of all (0). */
struct seen {
    unsigned status;  /* of the last HEADERS frame */
    unsigned answers; /* complete */
    size_t body;      /* bytes */
    bool ended;
    unsigned resets, goaways, pings;
    uint32_t error, last_stream; /* of the last RST_STREAM or GOAWAY frame */
    char ping[8];
};

static inline unsigned status_of(struct span block)
{
    static char storage[HTTP2_CLIENT_STORAGE];
    struct http2_table table;
    struct http2_client_response response;
    http2_table_init(&table, http2_client_keeps);
    http2_client_begin(&response, &table, block, false);
    assert_int_equal(http2_client_decode(&response, storage), HTTP2_CLIENT_DECODED);
    return response.status;
}

static inline struct seen look(uint32_t stream)
{
    struct seen seen = { 0 };
    struct http2_frame frame;
    struct span payload;
    while (next_frame(&frame, &payload)) {
        if (stream != 0 && frame.stream != 0 && frame.stream != stream)
            continue;
        const bool ends = frame.flags & HTTP2_FRAME_END_STREAM;
        switch (frame.type) {
        case HTTP2_FRAME_HEADERS:
            seen.status = status_of(payload);
            seen.answers += ends;
            seen.ended = ends;
            break;
        case HTTP2_FRAME_DATA:
            seen.body += payload.len;
            seen.answers += ends;
            seen.ended = ends;
            break;
        case HTTP2_FRAME_RST_STREAM:
            seen.resets++;
            seen.error = http2_frame_read_u32(payload.at);
            break;
        case HTTP2_FRAME_GOAWAY:
            seen.goaways++;
            seen.last_stream = http2_frame_read_u32(payload.at);
            seen.error = http2_frame_read_u32(payload.at + 4);
            break;
        case HTTP2_FRAME_PING:
            seen.pings++;
            memcpy(seen.ping, payload.at, sizeof(seen.ping));
            break;
        default:
            break;
        }
    }
    return seen;
}

/* One request and its whole answer. */
static inline struct seen exchange(const char *path)
{
    const uint32_t stream = add_get(path);
    send_frames();
    receive(SIZE_MAX);
    return look(stream);
}
