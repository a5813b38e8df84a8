/* SPDX-License-Identifier: MIT */
#include "session/stream.h"

#include "session/pages.h"

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

/* Reads the next bytes of a file that are in memory. Returns how many, or -1. The last bytes of a
 * range are read only when the file has not changed, so a body that mixes two versions is never
 * completed. */
static long read_file_bytes(struct session_thread *thread, struct session_answer *answer, char *to,
                            size_t size)
{
    const uint64_t left = answer->file_end - answer->file_at;
    const uint64_t ready = session_pages_ready(thread, answer);
    const size_t part = ready < size ? (size_t)ready : size;
    if (part == 0)
        return 0;
    if (site_file_read(answer->file, to, part, answer->file_at) < 0 ||
        (part == left && !site_file_unchanged(answer->file)))
        return -1;
    return (long)part;
}

static bool has_bytes(const struct session_stream *stream)
{
    const struct session_answer *answer = &stream->answer;
    return stream->text.len > 0 || answer->memory.len > 0 || answer->file_at < answer->file_end;
}

bool session_stream_lacks_pages(struct session_stream *stream, struct session_thread *thread)
{
    struct session_answer *answer = &stream->answer;
    return stream->text.len == 0 && answer->memory.len == 0 && answer->file_at < answer->file_end &&
           session_pages_ready(thread, answer) == 0;
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

bool session_stream_is_done(const struct session_stream *stream)
{
    return !has_bytes(stream) && stream->answer.parts.left == 0;
}

/* ---- without a copy ---- */

struct span session_stream_lend(struct session_stream *stream, size_t size)
{
    struct session_answer *answer = &stream->answer;
    if (stream->text.len > 0 || answer->memory.len < SESSION_LEND_LEAST)
        return span_of(NULL, 0);
    const struct span part = span_first(answer->memory, size);
    answer->memory = span_skip(answer->memory, part.len);
    answer->body_sent += part.len;
    return part;
}

static bool read_ahead(struct session_stream *stream, struct session_thread *thread,
                       struct session_ahead *ahead, size_t size)
{
    if (!thread->file_bytes)
        thread->file_bytes = malloc(SESSION_FILE_BYTES);
    const size_t room = SESSION_FILE_BYTES - thread->file_used;
    size = size < room ? size : room;
    if (!thread->file_bytes || size < SESSION_LEND_LEAST)
        return false;
    char *to = thread->file_bytes + thread->file_used;
    const long len = read_file_bytes(thread, &stream->answer, to, size);
    if (len <= 0)
        return false;
    thread->file_used += (size_t)len;
    *ahead = (struct session_ahead){ stream, span_of(to, (size_t)len), stream->answer.file_at };
    return true;
}

struct span session_stream_lend_file(struct session_stream *stream, struct session_thread *thread,
                                     struct session_ahead *ahead, size_t size, size_t most)
{
    struct session_answer *answer = &stream->answer;
    if (stream->text.len > 0 || answer->memory.len > 0 || answer->file_at == answer->file_end)
        return span_of(NULL, 0);
    const bool next = ahead->stream == stream && ahead->file_at == answer->file_at;
    if ((!next || ahead->bytes.len == 0) && !read_ahead(stream, thread, ahead, most))
        return span_of(NULL, 0);
    const struct span part = span_first(ahead->bytes, size);
    ahead->bytes = span_skip(ahead->bytes, part.len);
    ahead->file_at += part.len;
    answer->file_at += part.len;
    answer->body_sent += part.len;
    return part;
}

/* ---- with a copy ---- */

long session_stream_read(struct session_stream *stream, struct session_thread *thread, char *to,
                         size_t size)
{
    struct session_answer *answer = &stream->answer;
    size_t len = 0;
    while (len < size && (has_bytes(stream) || begin_part(stream))) {
        if (stream->text.len > 0) {
            len += copy_bytes(&stream->text, to + len, size - len);
        } else if (answer->memory.len > 0) {
            len += copy_bytes(&answer->memory, to + len, size - len);
        } else {
            const long part = read_file_bytes(thread, answer, to + len, size - len);
            if (part < 0)
                return -1;
            if (part == 0)
                break;
            answer->file_at += (uint64_t)part;
            len += (size_t)part;
        }
    }
    answer->body_sent += len;
    return (long)len;
}

void session_stream_free(struct session_thread *thread, struct session_stream *stream)
{
    session_answer_end(thread, &stream->answer);
    free(stream);
}
