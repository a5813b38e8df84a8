/* SPDX-License-Identifier: MIT */
#include "session/stream.h"

#include <stdlib.h>

struct session_stream *session_stream_new(struct session_exchange *x, struct span copied)
{
    struct session_answer *answer = &x->out->answer;
    if (!answer->open)
        session_answer_open(x, x->framing->status);
    const size_t framing = answer->parts.left > 0 ? HTTP_MULTIPART_FRAMING_MAX : 0;
    const size_t size = copied.len > framing ? copied.len : framing;
    struct session_stream *stream = malloc(sizeof(*stream) + size);
    if (!stream) {
        session_answer_end(x->thread, answer);
        return NULL;
    }
    stream->answer = *answer;
    stream->began_ns = x->began_ns;
    stream->due_ns = x->thread->now_ns + x->thread->shared->send_timeout_ns;
    stream->progress_bytes = 0;
    stream->stalled = false;
    stream->text = span_of(stream->storage, copied.len);
    if (copied.len > 0)
        memcpy(stream->storage, copied.at, copied.len);
    if (answer->entry && !answer->held) {
        site_cache_hold(&answer->entry->cache);
        stream->answer.held = true;
    }
    answer->open = false;
    return stream;
}

/* The next piece of memory: the rest of it stays for the next call. */
static size_t copy_bytes(struct span *from, char *to, size_t size)
{
    const struct span part = span_first(*from, size);
    memcpy(to, part.at, part.len);
    *from = span_skip(*from, part.len);
    return part.len;
}

/* The last bytes of a range are copied only when the file has not changed, so a body that mixes two
 * versions is never completed. */
static long copy_file_bytes(struct session_answer *answer, char *to, size_t size)
{
    const uint64_t left = answer->file_end - answer->file_at;
    const size_t part = left < size ? (size_t)left : size;
    if (site_file_read(answer->file, to, part, answer->file_at) < 0 ||
        (part == left && !site_file_unchanged(answer->file)))
        return -1;
    answer->file_at += part;
    return (long)part;
}

static bool has_bytes(const struct session_stream *stream)
{
    const struct session_answer *answer = &stream->answer;
    return stream->text.len > 0 || answer->memory.len > 0 || answer->file_at < answer->file_end;
}

/* Continues with the next part of a multipart body. False: no part is left. */
static bool begin_part(struct session_stream *stream)
{
    struct buf text = buf_over(stream->storage, HTTP_MULTIPART_FRAMING_MAX);
    if (!session_answer_next_part(&stream->answer, &text))
        return false;
    stream->text = buf_span(&text);
    return true;
}

long session_stream_read(struct session_stream *stream, char *to, size_t size, bool *ret_end)
{
    struct session_answer *answer = &stream->answer;
    size_t len = 0;
    while (len < size && (has_bytes(stream) || begin_part(stream))) {
        if (stream->text.len > 0) {
            len += copy_bytes(&stream->text, to + len, size - len);
        } else if (answer->memory.len > 0) {
            len += copy_bytes(&answer->memory, to + len, size - len);
        } else {
            long part = copy_file_bytes(answer, to + len, size - len);
            if (part < 0)
                return -1;
            len += (size_t)part;
        }
    }
    answer->body_sent += len;
    *ret_end = !has_bytes(stream) && answer->parts.left == 0;
    return (long)len;
}

void session_stream_free(struct session_thread *thread, struct session_stream *stream)
{
    session_answer_end(thread, &stream->answer);
    free(stream);
}
