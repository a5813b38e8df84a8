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
    buffer->open = false;
    buffer->group_count = 0;
    buffer->delayed_ns = 0;
    return buffer;
}

void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer)
{
    CHECK(!buffer->open);
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
