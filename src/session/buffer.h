/* SPDX-License-Identifier: MIT
 *
 * The output of a session. Answers that fit are staged in `bytes`, one behind the other. At most
 * one answer does not fit. It ends the batch, and its body follows the staged bytes, as memory or
 * as a range of a file.
 *
 * Private to session/. A session_thread keeps unused buffers, newest first, so that a busy
 * thread reuses the same buffer, which is in the CPU's cache.
 */
#pragma once

#include "base/check.h"
#include "http/multipart.h"
#include "site/site.h"

struct session_line;
struct session_thread;

enum {
    SESSION_BUFFER_BYTES = 32 * 1024,

    /* Space that a request needs in the buffer before it is planned: the longest head, with a
     * site's own fields, and a built-in error page. */
    SESSION_ANSWER_ROOM = 8 * 1024,

    /* Bodies up to this size are copied behind their head, so that several answers leave in one
     * send. Above this size, a second piece of memory is cheaper than the copy, and sendfile is
     * cheaper than reading the file. */
    SESSION_COPY_MAX = 12 * 1024,

    /* The last bytes of a file are read into memory, and only after a check that the file is
     * unchanged. So a body that mixes two versions is never completed. */
    SESSION_TAIL_BYTES = 1024
};

/* Answers of one site to requests that began at the same moment. They share one latency. */
struct session_group {
    uint64_t began_ns;
    unsigned site; /* its place in the statistics */
    unsigned count;
};
enum { SESSION_GROUPS_MAX = 8 };

/* An answer whose body is not copied behind its head. The other members are set only while
 * `open`. */
struct session_answer {
    bool open;
    bool held;                /* the answer has a reference to `entry` */
    bool listing;             /* `entry` counts as one of session_shared.listings */
    struct site_entry *entry; /* the owner of `memory` or `file` */
    struct span memory;       /* follows the staged bytes */
    const struct site_file *file;
    uint64_t file_at, file_end; /* the rest of the file, behind `memory` */
    size_t head_left;           /* staged bytes before this answer's body */
    uint64_t body_sent;
    struct session_line *line; /* NULL when the log is off */
    unsigned status;
    unsigned site; /* its place in the statistics */

    struct http_multipart parts; /* framing of a multipart body; ended for other bodies */
};

struct session_buffer {
    struct session_buffer *next; /* the next spare buffer of the thread */
    size_t at, len;              /* staged and unsent: bytes[at .. len) */

    struct session_answer answer; /* the one that ends the batch */

    /* For the statistics, of all answers in the buffer. */
    unsigned group_count;
    struct session_group group[SESSION_GROUPS_MAX];
    uint64_t delayed_ns; /* when a send was first partial; 0: never */

    char bytes[SESSION_BUFFER_BYTES];
};

/* Returns a spare buffer of the thread or a new one, empty. NULL: out of memory. */
struct session_buffer *session_buffer_take(struct session_thread *thread);

/* Returns a buffer to the thread. No answer may be open in it. */
void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer);

/* Removes `bytes` from the front of the output. Returns whether some of it is left to send as it
 * is. */
bool session_buffer_take_sent(struct session_buffer *out, size_t bytes);

/* Stages the last bytes of a file. False when it is no longer the file whose length was
 * announced. */
bool session_buffer_stage_tail(struct session_buffer *out);

/* Frees a chain of spare buffers. */
void session_buffer_free(struct session_buffer *spare);
