/* SPDX-License-Identifier: MIT
 *
 * A queue is a list of places, from `first` over `behind` to `last`. Place 0 is none.
 */
#include "http2/schedule.h"

/* The place behind which a stream goes in its queue. Incremental streams go to the end. The others
 * are sorted by number. A stream that is new has the highest number. */
static unsigned place_ahead(const struct http2_streams *streams, const struct http2_stream *stream)
{
    unsigned ahead = streams->last[stream->urgency][stream->incremental];
    while (!stream->incremental && ahead != 0 && streams->stream[ahead].id > stream->id)
        ahead = streams->stream[ahead].ahead;
    return ahead;
}

static void link_stream(struct http2_streams *streams, struct http2_stream *stream)
{
    unsigned urgency = stream->urgency, incremental = stream->incremental;
    unsigned place = http2_stream_place(streams, stream);
    unsigned ahead = place_ahead(streams, stream);
    uint8_t *forward = ahead != 0 ? &streams->stream[ahead].behind
                                  : &streams->first[urgency][incremental];
    unsigned behind = *forward;

    stream->ahead = (uint8_t)ahead;
    stream->behind = (uint8_t)behind;
    *forward = (uint8_t)place;
    if (behind != 0)
        streams->stream[behind].ahead = (uint8_t)place;
    else
        streams->last[urgency][incremental] = (uint8_t)place;
}

static void unlink_stream(struct http2_streams *streams, const struct http2_stream *stream)
{
    unsigned urgency = stream->urgency, incremental = stream->incremental;
    if (stream->ahead != 0)
        streams->stream[stream->ahead].behind = stream->behind;
    else
        streams->first[urgency][incremental] = stream->behind;
    if (stream->behind != 0)
        streams->stream[stream->behind].ahead = stream->ahead;
    else
        streams->last[urgency][incremental] = stream->ahead;
}

void http2_schedule_add(struct http2_streams *streams, struct http2_stream *stream)
{
    link_stream(streams, stream);
    streams->ready |= (uint8_t)(1u << stream->urgency);
    stream->queued = true;
}

void http2_schedule_remove(struct http2_streams *streams, struct http2_stream *stream)
{
    if (!stream->queued)
        return;
    unlink_stream(streams, stream);
    stream->queued = false;
    const uint8_t *first = streams->first[stream->urgency];
    if (first[0] == 0 && first[1] == 0)
        streams->ready &= (uint8_t) ~(1u << stream->urgency);
}

/* The urgency whose turn it is. `ready` is not 0. */
static unsigned choose_urgency(const struct http2_streams *streams)
{
    unsigned ready = streams->ready;
    unsigned rest = ready & (ready - 1);
    if (rest == 0 || streams->turn + 1 < HTTP2_SCHEDULE_SHARE)
        return (unsigned)__builtin_ctz(ready);
    unsigned later = rest & ~((2u << streams->lagging) - 1);
    return (unsigned)__builtin_ctz(later != 0 ? later : rest);
}

struct http2_stream *http2_schedule_next(struct http2_streams *streams)
{
    if (streams->ready == 0)
        return NULL;
    unsigned urgency = choose_urgency(streams);
    const uint8_t *first = streams->first[urgency];
    unsigned incremental = streams->alternate >> urgency & 1;
    unsigned place = first[incremental] != 0 ? first[incremental] : first[!incremental];
    return &streams->stream[place];
}

void http2_schedule_turn(struct http2_streams *streams, struct http2_stream *stream)
{
    unsigned above = streams->ready & ((1u << stream->urgency) - 1);
    unsigned below = streams->ready >> stream->urgency >> 1;

    if (above != 0) {
        streams->turn = 0;
        streams->lagging = stream->urgency;
    } else if (below != 0 && streams->turn < HTTP2_SCHEDULE_SHARE) {
        streams->turn++;
    }
    uint8_t bit = (uint8_t)(1u << stream->urgency);
    if (stream->incremental) {
        streams->alternate &= (uint8_t)~bit;
        unlink_stream(streams, stream);
        link_stream(streams, stream);
    } else {
        streams->alternate |= bit;
    }
}
