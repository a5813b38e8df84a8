/* SPDX-License-Identifier: MIT
 *
 * Every bound on what an HTTP/2 peer may send or make the server keep, in one place. All are
 * compile-time constants. Bounds that hold for a request in both versions are in http/limits.h. A
 * name in capitals after a bound is the fault above it (http2/fault.def).
 */
#pragma once

#include "http/limits.h"

enum {
    /* ---- header blocks (http2/hpack.h, http2/request.h) ---- */

    /* Bytes of a decoder's dynamic table, as RFC 7541 section 4.1 counts them. This is the initial
     * value of SETTINGS_HEADER_TABLE_SIZE, so no setting announces it. */
    HTTP2_TABLE_MAX = 4096,

    /* Fields of one request, pieces of cookies included. 431 above it. */
    HTTP2_FIELDS_MAX = HTTP_FIELDS_MAX,

    /* Bytes of one decoded field list: names, values, and 32 for each field (RFC 9113 section
     * 6.5.2). 431 above it. Announced as SETTINGS_MAX_HEADER_LIST_SIZE. */
    HTTP2_HEADER_LIST_MAX = HTTP_HEAD_MAX + 32 * HTTP2_FIELDS_MAX,

    /* Bytes of :authority. The request is malformed above it. A host name and a port have at most
     * 261. */
    HTTP2_AUTHORITY_MAX = 1024,

    /* ---- frames, streams, windows and budgets (http2/connection.h) ---- */

    /* Payload bytes of a frame: SETTINGS_MAX_FRAME_SIZE as every peer begins with it (RFC 9113
     * section 6.5.2). The server announces no other value, and sends no longer frame.
     * FRAME_LENGTH above it. */
    HTTP2_PAYLOAD_MAX = 16 * 1024,

    /* Streams open at a time: SETTINGS_MAX_CONCURRENT_STREAMS. RFC 9113 section 6.5.2 recommends
     * at least 100. The setting http2-streams can lower it. REFUSED above it. */
    HTTP2_STREAMS_MAX = 100,

    /* Bytes that the client may send before the server refunds them, for a stream and for the
     * connection. This is the value that RFC 9113 section 6.9.2 begins with. The server discards
     * bodies, so a larger window has no use. It refunds half a window at a time, as soon as that
     * has arrived. So one more frame always fits into the window, and no client can exceed it. */
    HTTP2_WINDOW = 65535,
    HTTP2_REFUND_LEAST = HTTP2_WINDOW / 2,

    /* Bytes of a header block with its frame heads and padding. BLOCK_LENGTH above it. The
     * decoded fields have a bound of their own, HTTP_HEAD_MAX. */
    HTTP2_BLOCK_MAX = 32 * 1024,

    /* CONTINUATION frames of one header block. CONTINUATIONS above it. Two frames are enough for
     * HTTP_HEAD_MAX. A flood of them is CVE-2024-27316 and its kin. */
    HTTP2_CONTINUATIONS_MAX = 8,

    /* Settings in one SETTINGS frame. SETTINGS_COUNT above it. */
    HTTP2_SETTINGS_MAX = 32,

    /* The budget of resets. Every stream that the client or the server resets costs 1, and so does
     * a refused stream. A reset that arrives after its answer costs 2. Each complete answer
     * refunds 1, up to this bound. RESETS when the budget is used up. The bound is twice
     * HTTP2_STREAMS_MAX, so that a browser can cancel all streams at once. */
    HTTP2_RESETS_MAX = 200,

    /* A stream that the client resets costs nothing when the connection has sent this many bytes
     * of DATA since the last reset. A video player resets a stream each time it seeks. */
    HTTP2_RESET_BYTES = 256 * 1024,

    /* The budget of frames without progress. SETTINGS, PING, PRIORITY, PRIORITY_UPDATE,
     * WINDOW_UPDATE, GOAWAY, unknown frames, frames on closed streams, and DATA of less than
     * HTTP2_SMALL_DATA bytes that does not end its stream cost 1, in both directions. A setting
     * that changes the windows of all open streams costs 1 more for each of them. WINDOW_UPDATE
     * costs nothing when it returns at least HTTP2_SMALL_DATA bytes of DATA that were sent. CONTROL
     * when the budget is used up. */
    HTTP2_CONTROL_MAX = 1000,

    /* Progress refunds a part of that budget: a complete answer, a DATA frame of at least
     * HTTP2_SMALL_DATA bytes sent, and one received. A client that updates two windows after each
     * DATA frame stays within the budget. */
    HTTP2_CONTROL_ANSWER = 8,
    HTTP2_CONTROL_SENT = 4,
    HTTP2_CONTROL_RECEIVED = 1,
    HTTP2_SMALL_DATA = 256,

    /* While a more urgent response has data to send, one DATA frame of this many goes to a less
     * urgent one (http2/schedule.h). */
    HTTP2_SCHEDULE_SHARE = 16,

    /* Bytes that http2_connection_read appends at most for one event: two WINDOW_UPDATE frames and
     * a GOAWAY frame with its text. */
    HTTP2_REPLY_ROOM = 256,
};
