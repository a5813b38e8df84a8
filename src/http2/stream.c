/* SPDX-License-Identifier: MIT
 *
 * Streams are found by their number in buckets of short chains. A free place is used again before
 * one that was never used, so a connection with few streams touches little memory.
 */
#include "http2/stream.h"

#include "http2/schedule.h"

/* Stream numbers are odd and mostly consecutive, so half of the number spreads them evenly. */
static unsigned bucket_of(uint32_t id)
{
    return id / 2 % HTTP2_STREAM_BUCKETS;
}

struct http2_stream *http2_stream_find(struct http2_streams *streams, uint32_t id)
{
    unsigned place = streams->bucket[bucket_of(id)];
    while (place != 0 && streams->stream[place].id != id)
        place = streams->stream[place].chain;
    return place != 0 ? &streams->stream[place] : NULL;
}

/* Applies what has been kept for the stream, and forgets it. The client has skipped the idle
 * streams below this one: they are closed now (RFC 9113 section 5.1.1). */
static void take_early(struct http2_streams *streams, struct http2_stream *stream)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < streams->early_count; i++) {
        struct http2_stream_early early = streams->early[i];
        if (early.id > stream->id)
            streams->early[kept++] = early;
        if (early.id == stream->id) {
            stream->urgency = early.priority.urgency & 7u;
            stream->incremental = early.priority.incremental;
            stream->updated = true;
        }
    }
    streams->early_count = (uint8_t)kept;
}

struct http2_stream *http2_stream_open(struct http2_streams *streams, uint32_t id, int32_t window)
{
    unsigned place = streams->free;
    if (place != 0)
        streams->free = streams->stream[place].chain;
    else
        place = ++streams->highest;

    struct http2_stream *stream = &streams->stream[place];
    uint8_t *bucket = &streams->bucket[bucket_of(id)];
    *stream = (struct http2_stream){
        .id = id, .window = window, .chain = *bucket, .urgency = HTTP2_URGENCY_DEFAULT, .open = true
    };
    *bucket = (uint8_t)place;
    streams->open++;
    if (streams->early_count > 0)
        take_early(streams, stream);
    return stream;
}

void http2_stream_close(struct http2_streams *streams, struct http2_stream *stream)
{
    unsigned place = http2_stream_place(streams, stream);
    uint8_t *link = &streams->bucket[bucket_of(stream->id)];
    while (*link != place)
        link = &streams->stream[*link].chain;
    *link = stream->chain;

    http2_schedule_remove(streams, stream);
    stream->wants = stream->open = false;
    stream->chain = streams->free;
    streams->free = (uint8_t)place;
    streams->open--;
}

void http2_stream_prioritise(struct http2_streams *streams, struct http2_stream *stream,
                             struct http2_priority priority)
{
    bool queued = stream->queued;
    http2_schedule_remove(streams, stream);
    stream->urgency = priority.urgency & 7u;
    stream->incremental = priority.incremental;
    if (queued)
        http2_schedule_add(streams, stream);
}

bool http2_stream_keep_early(struct http2_streams *streams, unsigned most, uint32_t id,
                             struct http2_priority priority)
{
    unsigned at = 0;
    while (at < streams->early_count && streams->early[at].id != id)
        at++;
    if (at == streams->early_count) {
        if (streams->open + streams->early_count >= most)
            return false;
        streams->early_count++;
    }
    streams->early[at] = (struct http2_stream_early){ id, priority };
    return true;
}
