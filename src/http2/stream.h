/* SPDX-License-Identifier: MIT
 *
 * The open streams of one HTTP/2 connection, in a table of fixed size that the caller owns. A
 * connection without open streams mostly needs no table (http2_connection_needs_table): the caller
 * can lend one table to all idle connections of a thread in turn. The table is never cleared
 * between two connections, since its last stream leaves it as it was at the beginning.
 */
#pragma once

#include "http2/limits.h"
#include "http2/priority.h"

#include <stddef.h>
#include <stdint.h>

/* One open stream, in 16 bytes. The caller reads `id` and `window`. The rest is private to
 * http2/. */
struct http2_stream {
    uint32_t id;
    int32_t window;        /* bytes that the client accepts; it can be negative */
    uint16_t received;     /* bytes of DATA that are not refunded */
    uint8_t chain;         /* the next stream of the same bucket, or the next free place; 0: none */
    uint8_t ahead, behind; /* neighbours in the schedule */
    uint8_t urgency : 3;
    bool incremental : 1;
    bool open : 1;
    bool updated : 1;  /* a PRIORITY_UPDATE frame has set its priority */
    bool ended : 1;    /* the client has ended its side: half-closed (remote) */
    bool answered : 1; /* the answer is complete: half-closed (local) */
    bool wants : 1;    /* the server has DATA to send */
    bool queued : 1;   /* in the schedule: it wants to send, and its window is open */
};

/* The priority of a stream that is not open yet (RFC 9218 section 7.1). */
struct http2_stream_early {
    uint32_t id;
    struct http2_priority priority;
};

enum { HTTP2_STREAM_BUCKETS = 128 };

/* Zeroed, it is empty. */
struct http2_streams {
    struct http2_stream stream[HTTP2_STREAMS_MAX + 1]; /* place 0 stays free: it means none */
    uint8_t bucket[HTTP2_STREAM_BUCKETS];
    uint8_t free;    /* the first of a chain of free places */
    uint8_t highest; /* places above it were never used */
    uint8_t open;

    /* The schedule: for each urgency the streams that wait for their turn, non-incremental and
     * incremental ones (http2/schedule.h). */
    uint8_t first[HTTP2_URGENCIES][2];
    uint8_t last[HTTP2_URGENCIES][2];
    uint8_t ready;     /* a bit for each urgency that has a stream */
    uint8_t turn;      /* frames since a less urgent stream had its turn */
    uint8_t lagging;   /* the urgency that had that turn */
    uint8_t alternate; /* a bit for each urgency: the next turn is an incremental stream's */

    uint8_t early_count;
    struct http2_stream_early early[HTTP2_STREAMS_MAX];
};

/* The number of a stream's place, 1 to HTTP2_STREAMS_MAX. The caller can keep what it knows about
 * a stream in an array of its own. No other open stream has the same place. */
static inline unsigned http2_stream_place(const struct http2_streams *streams,
                                          const struct http2_stream *stream)
{
    return (unsigned)(stream - streams->stream);
}

/* The rest is private to http2/. */

/* The open stream `id`; NULL: it is not open. */
struct http2_stream *http2_stream_find(struct http2_streams *streams, uint32_t id);

/* Opens stream `id`, which is above every earlier one, with the client's initial window. At most
 * HTTP2_STREAMS_MAX are open at a time. It has the default priority, or that of a PRIORITY_UPDATE
 * frame which has come before. */
struct http2_stream *http2_stream_open(struct http2_streams *streams, uint32_t id, int32_t window);

/* Closes an open stream, and removes it from the schedule. */
void http2_stream_close(struct http2_streams *streams, struct http2_stream *stream);

/* The priority of an open stream changes. */
void http2_stream_prioritise(struct http2_streams *streams, struct http2_stream *stream,
                             struct http2_priority priority);

/* Keeps the priority of the idle stream `id`. False: the open streams and the idle ones that have
 * a priority are more than `most`, which is at most HTTP2_STREAMS_MAX. */
bool http2_stream_keep_early(struct http2_streams *streams, unsigned most, uint32_t id,
                             struct http2_priority priority);
