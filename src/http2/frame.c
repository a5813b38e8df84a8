/* SPDX-License-Identifier: MIT */
#include "http2/frame.h"

void http2_frame_add(struct buf *out, struct http2_frame frame)
{
    char head[HTTP2_FRAME_HEAD];
    http2_frame_write(head, frame);
    buf_add(out, span_of(head, sizeof(head)));
}

/* Appends a frame whose payload is one number. */
static void add_number(struct buf *out, enum http2_frame_type type, uint32_t stream,
                       uint32_t number)
{
    char whole[HTTP2_FRAME_HEAD + 4];
    http2_frame_write(whole,
                      (struct http2_frame){ .length = 4, .type = (uint8_t)type, .stream = stream });
    http2_frame_write_u32(whole + HTTP2_FRAME_HEAD, number);
    buf_add(out, span_of(whole, sizeof(whole)));
}

void http2_frame_add_reset(struct buf *out, uint32_t stream, uint32_t error)
{
    add_number(out, HTTP2_FRAME_RST_STREAM, stream, error);
}

void http2_frame_add_window(struct buf *out, uint32_t stream, uint32_t bytes)
{
    add_number(out, HTTP2_FRAME_WINDOW_UPDATE, stream, bytes);
}

void http2_frame_add_ping(struct buf *out, const char payload[8], bool ack)
{
    char whole[HTTP2_FRAME_HEAD + 8];
    http2_frame_write(whole, (struct http2_frame){ .length = 8,
                                                   .type = HTTP2_FRAME_PING,
                                                   .flags = ack ? HTTP2_FRAME_ACK : 0 });
    memcpy(whole + HTTP2_FRAME_HEAD, payload, 8);
    buf_add(out, span_of(whole, sizeof(whole)));
}

void http2_frame_add_goaway(struct buf *out, uint32_t last_stream, uint32_t error, struct span text)
{
    char front[HTTP2_FRAME_HEAD + 8];
    if (buf_room(out) < sizeof(front) + text.len) {
        out->overflow = true;
        return;
    }
    http2_frame_write(front, (struct http2_frame){ .length = (uint32_t)(8 + text.len),
                                                   .type = HTTP2_FRAME_GOAWAY });
    http2_frame_write_u32(front + HTTP2_FRAME_HEAD, last_stream);
    http2_frame_write_u32(front + HTTP2_FRAME_HEAD + 4, error);
    buf_add(out, span_of(front, sizeof(front)));
    buf_add(out, text);
}

void http2_frame_add_setting(struct buf *out, enum http2_frame_setting setting, uint32_t value)
{
    char whole[HTTP2_FRAME_SETTING_BYTES] = { (char)(setting >> 8), (char)setting };
    http2_frame_write_u32(whole + 2, value);
    buf_add(out, span_of(whole, sizeof(whole)));
}
