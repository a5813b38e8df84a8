/* SPDX-License-Identifier: MIT
 *
 * The frames of a client that carry neither requests nor bodies: PRIORITY, RST_STREAM, SETTINGS,
 * PING, GOAWAY, WINDOW_UPDATE and PRIORITY_UPDATE. Each costs a part of a budget.
 *
 * Private to http2/: http2/connection.c uses it.
 */
#pragma once

#include "http2/connection.h"
#include "http2/frame.h"

enum http2_control_phase {
    HTTP2_CONTROL_PREFACE,
    HTTP2_CONTROL_OPEN,
    HTTP2_CONTROL_FAILING, /* `fault` is set, and GOAWAY is not written */
    HTTP2_CONTROL_FAILED
};

/* Why a stream is closed. */
enum http2_control_past {
    HTTP2_CONTROL_ENDED,   /* both sides have ended it, or the client has reset it */
    HTTP2_CONTROL_RESET,   /* the server has reset it: the client may not know that yet */
    HTTP2_CONTROL_SKIPPED, /* it was never open (RFC 9113 section 5.1.1) */
    HTTP2_CONTROL_FORGOTTEN
};

/* The past of stream `id`, which is closed: odd, not open, and not above `last_stream`. */
enum http2_control_past http2_control_past_of(const struct http2_connection *c, uint32_t id);

/* Notes that the connection has failed. http2_connection_read writes GOAWAY. The first fault
 * counts. */
void http2_control_fail(struct http2_connection *c, enum http2_fault fault);

/* Spends `cost` of a budget. */
void http2_control_spend_frames(struct http2_connection *c, int cost);
void http2_control_spend_resets(struct http2_connection *c, int cost);

/* Refunds a part of the budget of frames, after progress. */
void http2_control_refund_frames(struct http2_connection *c, int refund);

/* Closes an open stream. */
void http2_control_close(struct http2_connection *c, struct http2_stream *stream);

/* Checks what the head of a frame of these types shows: its length and its stream. */
enum http2_fault http2_control_check(struct http2_frame frame);

enum { HTTP2_CONTROL_NOTHING = -1 };

/* Reads one frame of these types, which http2_control_check has accepted. Returns an enum
 * http2_event, or HTTP2_CONTROL_NOTHING. */
int http2_control_read(struct http2_connection *c, struct http2_frame frame, const char *payload,
                       struct buf *out, struct http2_arrival *ret_arrival);

/* Appends the GOAWAY that ends a graceful end. */
void http2_control_finish(struct http2_connection *c, struct buf *out);

/* The payload of the PING that follows the first GOAWAY. */
extern const char http2_control_drain_ping[8];
