/* SPDX-License-Identifier: MIT */
#include "session/buffer.h"

#include "session/thread.h"

#include <stdlib.h>

enum { SPARE_MAX = 64 }; /* 2 MiB for each thread; more are freed */

struct session_buffer *session_buffer_take(struct session_thread *thread)
{
    struct session_buffer *buffer = thread->spare;
    if (__builtin_expect(buffer != NULL, 1)) {
        thread->spare = buffer->next;
        thread->spare_count--;
    } else {
        buffer = malloc(sizeof(*buffer));
        if (!buffer)
            return NULL;
    }
    buffer->at = buffer->len = 0;
    buffer->answer.open = false;
    buffer->group_count = 0;
    buffer->delayed_ns = 0;
    return buffer;
}

void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer)
{
    CHECK(!buffer->answer.open);
    if (thread->spare_count >= SPARE_MAX) {
        free(buffer);
        return;
    }
    buffer->next = thread->spare;
    thread->spare = buffer;
    thread->spare_count++;
}

void session_buffer_free(struct session_buffer *spare)
{
    while (spare) {
        struct session_buffer *next = spare->next;
        free(spare);
        spare = next;
    }
}

static size_t smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

bool session_buffer_take_sent(struct session_buffer *out, size_t bytes)
{
    size_t staged = smaller_size(bytes, out->len - out->at);
    out->at += staged;
    bytes -= staged;
    if (__builtin_expect(!out->answer.open, 1)) {
        CHECK(bytes == 0);
        return out->at < out->len;
    }
    size_t head = smaller_size(staged, out->answer.head_left);
    out->answer.head_left -= head;
    out->answer.body_sent += staged - head + bytes;
    size_t memory = smaller_size(bytes, out->answer.memory.len);
    out->answer.memory = span_skip(out->answer.memory, memory);
    bytes -= memory;
    CHECK(bytes <= out->answer.file_end - out->answer.file_at);
    out->answer.file_at += bytes;
    return out->at < out->len || out->answer.memory.len > 0 ||
           out->answer.file_end - out->answer.file_at > SESSION_TAIL_BYTES;
}

bool session_buffer_stage_tail(struct session_buffer *out)
{
    size_t len = (size_t)(out->answer.file_end - out->answer.file_at);
    if (site_file_read(out->answer.file, out->bytes, len, out->answer.file_at) < 0 ||
        !site_file_unchanged(out->answer.file))
        return false;
    out->at = 0;
    out->len = len;
    out->answer.file_at = out->answer.file_end;
    return true;
}
