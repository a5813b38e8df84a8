/* SPDX-License-Identifier: MIT
 *
 * The server's end of one HTTP/2 connection (RFC 9113): bytes go in, events come out. It keeps
 * settings, stream states, windows and the budgets against floods, and decides which stream sends
 * next. It makes no system call, allocates nothing and knows no time. It does not decode header
 * blocks, and it does not write the frames of answers.
 *
 *     http2_connection_begin(c, streams_most, out)      once: the server's SETTINGS
 *     c->streams = table                                before each read
 *     while ((event = http2_connection_read(c, &in, out, joined, &arrival)) ...)
 *         REQUEST: decode arrival.block, answer HEADERS with http2_frame_add; then either
 *             http2_connection_end                      the answer has no body
 *             http2_connection_want                     it has a body
 *     while (stream = http2_connection_next(c))         send as much as `out` has space for
 *         append a DATA frame of at most http2_connection_allows(c, stream) bytes
 *         http2_connection_spend(c, stream, bytes); after the last: http2_connection_end
 *
 * Frames that answer the client (SETTINGS and PING acknowledgements, WINDOW_UPDATE, RST_STREAM,
 * GOAWAY) are appended to `out`. The caller appends whole frames, so the order of calls is the
 * order on the wire.
 *
 * Threads: none. One connection is used by one thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "http2/fault.h"
#include "http2/stream.h"

/* One connection. The caller owns the storage and sets `streams`. It may read `streams`, `fault`,
 * `last_stream`, `acknowledged`, `draining`, `finishing` and `client_goes`. The rest is private to
 * http2/. */
struct http2_connection {
    /* The table of open streams, which the caller owns and sets. It must be set for every call
     * below but http2_connection_begin. http2_connection_release takes it back. */
    struct http2_streams *streams;

    /* The latest 64 streams, as bits: bit n is the stream last_stream - 2 n. */
    uint64_t opened; /* a request opened it; otherwise the client skipped it */
    uint64_t reset;  /* the server has reset it */

    uint32_t last_stream;   /* the highest that the client has opened; 0: none */
    uint32_t final_stream;  /* the last one that the final GOAWAY promises to answer */
    int32_t window;         /* bytes of DATA that the client accepts on the connection */
    int32_t initial_window; /* its SETTINGS_INITIAL_WINDOW_SIZE */
    uint32_t received;      /* bytes of DATA that are not refunded */
    uint32_t payload_left;  /* of the frame that is being read: bytes of DATA, or to skip */
    uint32_t sent; /* bytes of DATA since the client's last reset, up to HTTP2_RESET_BYTES */
    uint32_t
        unreturned;  /* bytes of DATA that the client may still return to its windows for free */
    int16_t resets;  /* the rest of HTTP2_RESETS_MAX */
    int16_t control; /* the rest of HTTP2_CONTROL_MAX */
    uint8_t payload_place; /* the stream of that DATA; 0: the bytes are skipped */
    uint8_t padding_left;  /* behind payload_left */
    uint8_t phase;
    uint8_t streams_most;   /* open at a time */
    uint8_t fault;          /* enum http2_fault: why the connection has failed */
    bool payload_ends : 1;  /* that DATA ends its stream */
    bool acknowledged : 1;  /* the client has acknowledged the server's settings */
    bool configured : 1;    /* the client's first SETTINGS frame has arrived */
    bool unprioritised : 1; /* it had SETTINGS_NO_RFC7540_PRIORITIES = 1 */
    bool draining : 1;      /* http2_connection_drain was called */
    bool finishing : 1;     /* the final GOAWAY was sent: no new stream is answered */
    bool client_goes : 1;   /* the client has sent GOAWAY */
};

/* The result of http2_connection_read. */
enum http2_event {
    /* More input is needed. The rest of `in` is an unfinished frame or header block, at most
     * HTTP2_BLOCK_MAX bytes. The caller keeps it in front of the bytes that follow. */
    HTTP2_MORE,

    /* `out` has less space than HTTP2_REPLY_ROOM bytes: send first, then call again. */
    HTTP2_FULL,

    /* A request: `stream`, `block`, `end`. The caller decodes the block and answers. */
    HTTP2_REQUEST,

    /* Trailers, which end the client's side of `stream`: `block`, which the caller decodes. */
    HTTP2_TRAILERS,

    /* A part of a request's body: `stream`, `data` without padding, `end`. Its bytes are
     * refunded: the caller has no means to slow the client down. `data` can be empty. */
    HTTP2_DATA,

    /* `stream` is closed, and its place is free. Its `id` can be read until the next call. Either
     * the client has reset it (`fault` is NONE, and `error` is the client's code), or the server
     * has because of `fault`, and RST_STREAM is in `out`. A `block` that is not empty must be
     * decoded and dropped. */
    HTTP2_RESET,

    /* A header block of a stream that is refused (`fault` is REFUSED) or was closed earlier
     * (`fault` is NONE). The caller knows no such stream. It must decode `block`, because the
     * block changes the table of the client's encoder, and drop the fields. */
    HTTP2_DROP,

    /* The client sends no more requests: `error` is its code. Streams continue. */
    HTTP2_GOAWAY,

    /* The connection has failed because of `fault`, and GOAWAY is in `out`. The caller sends it
     * and closes. All streams are lost, and every later call returns this event. */
    HTTP2_FAILED
};

/* Only the members that the event names are set. */
struct http2_arrival {
    struct http2_stream *stream; /* valid until it is closed */
    struct span block;           /* lent until the next call; in the input or in `joined` */
    struct span data;            /* lent as long as the input */
    uint32_t error;              /* a code of RFC 9113 section 7, or any other number */
    uint8_t fault;               /* enum http2_fault */
    bool end;                    /* the client has ended its side of the stream */
};

/* Begins a connection whose preface has not been read, and appends the server's SETTINGS to
 * `out`, at most HTTP2_REPLY_ROOM bytes. `streams_most` is 1 to HTTP2_STREAMS_MAX. */
void http2_connection_begin(struct http2_connection *c, unsigned streams_most, struct buf *out);

/* Reads the next event from the front of *in, and removes what it has consumed. Any split of the
 * input gives the same events, apart from the split of DATA. `joined` is scratch memory of
 * HTTP2_BLOCK_MAX bytes: a header block that continues in further frames is joined there. The
 * caller calls again until the event is MORE, FULL or FAILED. */
enum http2_event http2_connection_read(struct http2_connection *c, struct span *in, struct buf *out,
                                       char *joined, struct http2_arrival *ret_arrival);

/* Takes the table back: returns `streams`, empty, and sets NULL. The caller does so while
 * http2_connection_needs_table is false, so that an idle connection needs no table, and when the
 * connection ends. Streams that are still open are forgotten. NULL: there is no table. */
struct http2_streams *http2_connection_release(struct http2_connection *c);

/* Whether a stream is open, or one that is not open yet has a priority (RFC 9218 section 7.1). */
static inline bool http2_connection_needs_table(const struct http2_connection *c)
{
    return c->streams && c->streams->open + c->streams->early_count > 0;
}

/* How many streams are open. */
static inline unsigned http2_connection_open(const struct http2_connection *c)
{
    return c->streams ? c->streams->open : 0;
}

/* Applies the Priority field of a request. A PRIORITY_UPDATE frame that has arrived overrides it
 * (RFC 9218 section 7). Without a call the stream has the default priority. */
void http2_connection_prioritise(struct http2_connection *c, struct http2_stream *stream,
                                 struct http2_priority priority);

/* The stream has DATA to send: it takes part in the schedule until it is closed. */
void http2_connection_want(struct http2_connection *c, struct http2_stream *stream);

/* The stream has nothing to send for now. */
void http2_connection_rest(struct http2_connection *c, struct http2_stream *stream);

/* The stream whose turn it is to send DATA; NULL: none wants to, or all windows are closed. */
struct http2_stream *http2_connection_next(struct http2_connection *c);

/* How many bytes of DATA the stream may send now: the smaller one of both windows. */
uint32_t http2_connection_window(const struct http2_connection *c,
                                 const struct http2_stream *stream);

/* The same for one frame, at most HTTP2_PAYLOAD_MAX. A stream may send it without being next, as a
 * small body behind its head is. */
uint32_t http2_connection_allows(const struct http2_connection *c,
                                 const struct http2_stream *stream);

/* A DATA frame of `bytes`, at most what http2_connection_allows returned, is in the output. This
 * ends the stream's turn. The last DATA frame of a stream is followed by http2_connection_end. */
void http2_connection_spend(struct http2_connection *c, struct http2_stream *stream,
                            uint32_t bytes);

/* A frame with END_STREAM is in the output, and the client still sends its request. The stream
 * sends no more, and stays open until http2_connection_end or http2_connection_reset. A reset by
 * the client costs no more than the answer refunds. */
void http2_connection_finish(struct http2_connection *c, struct http2_stream *stream);

/* A frame with END_STREAM is in the output: the answer is complete, and the stream is closed. Its
 * place is free. When the client has not ended its side, the server asks it to stop: RST_STREAM
 * with NO_ERROR (RFC 9113 section 8.1), which needs 13 bytes of `out`. */
void http2_connection_end(struct http2_connection *c, struct buf *out, struct http2_stream *stream);

/* Resets a stream and closes it. Appends RST_STREAM, which needs 13 bytes of `out`. The reset
 * counts against the budget of resets. When that is used up, the next http2_connection_read
 * returns HTTP2_FAILED, also with empty input. */
void http2_connection_reset(struct http2_connection *c, struct buf *out,
                            struct http2_stream *stream, enum http2_fault fault);

/* Whether the connection has failed in a call other than http2_connection_read, such as by its
 * budget, and GOAWAY is not written. http2_connection_fail writes it. */
bool http2_connection_failing(const struct http2_connection *c);

/* Ends the connection because of `fault`, and appends GOAWAY, which needs HTTP2_REPLY_ROOM bytes
 * of `out`. A second call has no effect. */
void http2_connection_fail(struct http2_connection *c, struct buf *out, enum http2_fault fault);

/* Begins a graceful end (RFC 9113 section 6.8). The first GOAWAY announces it, with a PING behind
 * it. When the client acknowledges the PING, http2_connection_read appends the final GOAWAY with
 * the last stream, and ignores later streams. The connection ends when http2_connection_drained
 * returns true. Needs HTTP2_REPLY_ROOM bytes of `out`. A second call sends the final GOAWAY at
 * once: for a client that does not answer. A third one has no effect. */
void http2_connection_drain(struct http2_connection *c, struct buf *out);

/* The final GOAWAY was sent or the client sends no more requests, and no stream is open: the
 * connection can be closed without losing anything. */
bool http2_connection_drained(const struct http2_connection *c);
