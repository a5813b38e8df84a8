/* SPDX-License-Identifier: MIT
 *
 * What a session is about to send. Answers that fit are staged one behind the
 * other in `bytes`; at most one that does not fit ends the batch, with its body
 * as memory or as a range of a file behind the staged bytes.
 *
 * Private to session/. A thread keeps the buffers that are not in use, newest
 * first, so that a busy thread goes through the same warm one all the time.
 */
#pragma once

#include "base/check.h"
#include "http/multipart.h"
#include "site/site.h"

struct session_line;
struct session_thread;

enum {
    SESSION_BUFFER_BYTES = 32 * 1024,

    /* Room that a request needs in the buffer before it is planned: the longest
     * head, with a site's own fields, and a built-in error page. */
    SESSION_ANSWER_ROOM = 8 * 1024,

    /* Bodies up to this size are copied behind their head, so that several answers
     * leave in one send; above it, a second piece of memory is cheaper than the
     * copy, and a file than reading it. */
    SESSION_COPY_MAX = 12 * 1024,

    /* The last bytes of a file are read rather than sent from the file, and only
     * after the file was seen to be unchanged: a body that mixes two versions is
     * never completed. */
    SESSION_TAIL_BYTES = 1024
};

/* Answers of one site to requests that began at the same moment. */
struct session_group {
    uint64_t began_ns;
    unsigned site; /* its place in the statistics */
    unsigned count;
};
enum { SESSION_GROUPS_MAX = 8 };

struct session_buffer {
    struct session_buffer *next; /* among a thread's spare ones */
    size_t at, len;              /* staged and unsent: bytes[at .. len) */

    /* The answer that ends the batch; the rest is unset while `open` is false. */
    bool open;
    bool held;                /* `entry` has a reference of ours */
    struct site_entry *entry; /* whose memory or file this is; NULL for `owned` */
    char *owned;              /* memory to free at the end; NULL when none */
    struct span memory;       /* behind the staged bytes */
    const struct site_file *file;
    uint64_t file_at, file_end; /* what is left of the file, behind `memory` */
    size_t head_left;           /* staged bytes that are not of this answer's body */
    uint64_t body_sent;
    struct session_line *line; /* NULL when the log is off */
    unsigned status;
    unsigned site; /* its place in the statistics */

    struct http_multipart parts; /* what is left of a multipart body; ended for any other */

    /* All answers that go through the buffer, for the statistics. */
    unsigned group_count;
    struct session_group group[SESSION_GROUPS_MAX];
    uint64_t delayed_ns; /* a send did not finish them, at this moment; 0: that has not happened */

    char bytes[SESSION_BUFFER_BYTES];
};

/* One from the thread's spare ones, or a new one; empty. NULL without memory. */
struct session_buffer *session_buffer_take(struct session_thread *thread);

/* Gives it back. Nothing may be open in it. */
void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer);

/* Frees a chain of spare ones. */
void session_buffer_free(struct session_buffer *spare);
