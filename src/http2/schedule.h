/* SPDX-License-Identifier: MIT
 *
 * Which stream sends next (RFC 9218 section 10). Streams that have DATA and an open window wait
 * in one queue for each urgency.
 *
 * - The most urgent stream comes first.
 * - Of equal urgency, non-incremental streams are served one after the other, by stream number.
 *   Incremental streams take turns, one frame each. When there are both, the turns alternate
 *   between the first non-incremental stream and the incremental ones.
 * - RFC 9218 recommends that no response starves. So while more urgent streams send, one frame of
 *   HTTP2_SCHEDULE_SHARE goes to a less urgent stream. Less urgent classes share these frames in
 *   turns.
 *
 * The choice costs the same for any number of streams. A non-incremental stream that comes back
 * when its window opens is sorted in, which costs a walk over at most HTTP2_STREAMS_MAX streams.
 *
 * Private to http2/: the caller uses http2/connection.h.
 */
#pragma once

#include "http2/stream.h"

/* Adds a stream that is not in the schedule. */
void http2_schedule_add(struct http2_streams *streams, struct http2_stream *stream);

/* Removes a stream, if it is in the schedule. */
void http2_schedule_remove(struct http2_streams *streams, struct http2_stream *stream);

/* The stream whose turn it is; NULL: none. The answer stays the same until http2_schedule_turn, or
 * until a stream is added or removed. */
struct http2_stream *http2_schedule_next(struct http2_streams *streams);

/* The stream of http2_schedule_next has sent a frame: its turn is over. */
void http2_schedule_turn(struct http2_streams *streams, struct http2_stream *stream);
