/* SPDX-License-Identifier: MIT
 *
 * The head of an HTTP/2 frame (RFC 9113 section 4.1), read and written, and the frames that have
 * a fixed form. Server and client use the same functions. What a frame means is elsewhere
 * (http2/connection.h).
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* The bytes that a client's connection begins with (RFC 9113 section 3.4). A SETTINGS frame
 * follows them. */
#define HTTP2_FRAME_PREFACE SPAN("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

enum {
    HTTP2_FRAME_HEAD = 9, /* bytes */
    HTTP2_FRAME_PREFACE_BYTES = 24
};

enum http2_frame_type {
    HTTP2_FRAME_DATA = 0x0,
    HTTP2_FRAME_HEADERS = 0x1,
    HTTP2_FRAME_PRIORITY = 0x2,
    HTTP2_FRAME_RST_STREAM = 0x3,
    HTTP2_FRAME_SETTINGS = 0x4,
    HTTP2_FRAME_PUSH_PROMISE = 0x5,
    HTTP2_FRAME_PING = 0x6,
    HTTP2_FRAME_GOAWAY = 0x7,
    HTTP2_FRAME_WINDOW_UPDATE = 0x8,
    HTTP2_FRAME_CONTINUATION = 0x9,
    HTTP2_FRAME_PRIORITY_UPDATE = 0x10 /* RFC 9218 section 7.1 */
};

/* A flag means this only on the types that define it. Other flags are ignored. */
enum {
    HTTP2_FRAME_ACK = 0x1,         /* SETTINGS, PING */
    HTTP2_FRAME_END_STREAM = 0x1,  /* DATA, HEADERS */
    HTTP2_FRAME_END_HEADERS = 0x4, /* HEADERS, CONTINUATION */
    HTTP2_FRAME_PADDED = 0x8,      /* DATA, HEADERS */
    HTTP2_FRAME_PRIORITISED = 0x20 /* HEADERS: five bytes of RFC 7540's priorities */
};

/* The settings that exist (RFC 9113 section 6.5.2, RFC 9218 section 2.1). */
enum http2_frame_setting {
    HTTP2_FRAME_HEADER_TABLE_SIZE = 0x1,
    HTTP2_FRAME_ENABLE_PUSH = 0x2,
    HTTP2_FRAME_MAX_CONCURRENT_STREAMS = 0x3,
    HTTP2_FRAME_INITIAL_WINDOW_SIZE = 0x4,
    HTTP2_FRAME_MAX_FRAME_SIZE = 0x5,
    HTTP2_FRAME_MAX_HEADER_LIST_SIZE = 0x6,
    HTTP2_FRAME_NO_RFC7540_PRIORITIES = 0x9
};

enum { HTTP2_FRAME_SETTING_BYTES = 6 };

/* Stream 0 is the connection. */
struct http2_frame {
    uint32_t length; /* bytes of payload, below 2^24 */
    uint32_t stream; /* below 2^31 */
    uint8_t type;    /* enum http2_frame_type, or a type that is unknown */
    uint8_t flags;
};

static inline uint32_t http2_frame_read_u32(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return __builtin_bswap32(value);
}

static inline void http2_frame_write_u32(char *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof(value));
}

/* Reads a head from the HTTP2_FRAME_HEAD bytes at `at`. The reserved bit is ignored. */
static inline struct http2_frame http2_frame_read(const char *at)
{
    uint32_t first = http2_frame_read_u32(at);
    return (struct http2_frame){ .length = first >> 8,
                                 .stream = http2_frame_read_u32(at + 5) & 0x7fffffff,
                                 .type = (uint8_t)first,
                                 .flags = (uint8_t)at[4] };
}

/* Writes a head into the HTTP2_FRAME_HEAD bytes at `at`. A head can be written after its payload,
 * when the length is known. */
static inline void http2_frame_write(char *at, struct http2_frame frame)
{
    http2_frame_write_u32(at, frame.length << 8 | frame.type);
    at[4] = (char)frame.flags;
    http2_frame_write_u32(at + 5, frame.stream);
}

/* Appends a head, or nothing and sets `overflow`. */
void http2_frame_add(struct buf *out, struct http2_frame frame);

/* Append a whole frame, or nothing and set `overflow`. */
void http2_frame_add_reset(struct buf *out, uint32_t stream, uint32_t error);
void http2_frame_add_window(struct buf *out, uint32_t stream, uint32_t bytes);
void http2_frame_add_ping(struct buf *out, const char payload[8], bool ack);
void http2_frame_add_goaway(struct buf *out, uint32_t last_stream, uint32_t error,
                            struct span text);

/* Appends one setting. The caller writes the head of the SETTINGS frame. */
void http2_frame_add_setting(struct buf *out, enum http2_frame_setting setting, uint32_t value);
