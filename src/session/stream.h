/* SPDX-License-Identifier: MIT
 *
 * The body of an answer that HTTP/2 sends in turns: the bytes that no DATA frame has carried yet.
 * They are copied, or they are memory of a cache entry, a range of a file, or parts of either. The
 * stream owns what the answer needs, so it lives until its last byte is in a frame or until it
 * is reset.
 *
 * It knows no frame and no window: session/http2.h has these.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

struct session_stream {
    struct session_answer answer; /* open */
    struct span text;             /* is sent before what `answer` names; in `storage` */
    uint64_t began_ns;            /* when the first byte of the request arrived */
    uint64_t due_ns;              /* when its window is looked at, unless it makes progress */
    uint32_t progress_bytes;      /* since due_ns last moved */
    bool stalled;                 /* its window was closed at the last look */
    char storage[];
};

/* Takes the answer of an exchange: the one that is open in `x->out`, or the bytes behind its head,
 * `copied`, which are then opened as one. Takes or holds a reference to the answer's entry. NULL:
 * out of memory, and the answer is logged as cut. */
struct session_stream *session_stream_new(struct session_exchange *x, struct span copied);

/* Whether no DATA frame is to follow. */
bool session_stream_is_done(const struct session_stream *stream);

/* Takes the next bytes of the body, at most `size`, from where they are: in memory of the answer's
 * entry. An empty span: they must be copied, since they are few, or of another kind. */
struct span session_stream_lend(struct session_stream *stream, size_t size);

/* Bytes that were read from the file of a stream for several frames, and are in none yet. */
struct session_ahead {
    const struct session_stream *stream; /* NULL: none */
    struct span bytes;                   /* of its file */
    uint64_t file_at;                    /* where in the file they begin */
};

/* The same for a file. When `ahead` does not have the stream's next bytes, up to `most` bytes are
 * read into the unused part of the thread's `file_bytes`. An empty span: they must be copied, and
 * session_stream_read finds out whether the file has changed. */
struct span session_stream_lend_file(struct session_stream *stream, struct session_thread *thread,
                                     struct session_ahead *ahead, size_t size, size_t most);

/* Whether the body continues with a file whose pages are not in memory (session/pages.h). */
bool session_stream_lacks_pages(struct session_stream *stream, struct session_thread *thread);

/* Copies the next bytes of the body that are in memory, at most `size`, and returns how many. -1:
 * the file has changed, so the answer cannot be completed. */
long session_stream_read(struct session_stream *stream, struct session_thread *thread, char *to,
                         size_t size);

/* Logs the answer, and frees the stream. */
void session_stream_free(struct session_thread *thread, struct session_stream *stream);
