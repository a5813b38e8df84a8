/* SPDX-License-Identifier: MIT
 *
 * Answers as frames of HTTP/2 in the session's output. An answer is written as HTTP/1.1 into
 * scratch memory (session/answer.h), and its head is translated to a header block here. The
 * answer with a whole file from the cache has a block that was made when the file was loaded.
 *
 * Bodies follow as far as the client's windows and the output have space. The rest of a body
 * stays in a stream (session/stream.h) until its turn. Large payloads are lent, not copied.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

enum {
    /* Space in the output for the frames of an answer, and for the frames that one event of the
     * connection adds. A header block needs more than the same head as text. */
    SESSION_FRAMES_ROOM = SESSION_ANSWER_ROOM + 2 * 1024
};

/* Puts a 200 with a whole file of `entry` into the output. False, and nothing has changed: the file
 * has no ready-made block, or the output or the client's windows have no space. */
bool session_frames_add_ready(struct session_exchange *x, struct site_entry *entry,
                              const struct site_file *file);

/* Puts an interim response (1xx) into the output, from its head in the form of HTTP/1.1. False: the
 * output would have less space than the answer that follows may need. */
bool session_frames_add_interim(struct session_exchange *x, struct span head);

/* Puts a ready-made answer into the output. `location` is a line in place of its own, or empty.
 * False, and nothing has changed: the answer has a field of the request, or there is no space. */
bool session_frames_add_bodiless(struct session_exchange *x,
                                 const struct session_ready_answer *ready, struct span location);

/* The most bytes of a body that are put behind its head. The answer goes behind the frames in the
 * output, and must fit there and into the client's windows. */
size_t session_frames_copy_max(const struct session_exchange *x);

/* Puts the answer in x->out, or as much of it as possible, into the output, which has
 * SESSION_FRAMES_ROOM free bytes. */
void session_frames_add_answer(struct session_exchange *x);

/* Continues with the bodies that wait, while the output has space. */
void session_frames_add_bodies(struct session *s);

/* Continues with the body in this place, when the pages of its file are in memory now. */
void session_frames_resume(struct session *s, unsigned number, uint64_t now_ns);

/* Looks for answers whose window stays closed, and resets their streams. An answer without progress
 * for send-timeout has one more send-timeout, because it may have waited for its turn. */
void session_frames_expire(struct session *s, uint64_t now_ns);

/* Ends the streams that have lingered long enough after their answer. */
void session_frames_expire_lingering(struct session *s, uint64_t now_ns);

/* The answer is complete: closes the stream. Appends RST_STREAM with NO_ERROR if the client still
 * sends its request (RFC 9113 section 8.1). */
void session_frames_end(struct session *s, struct http2_stream *stream);

/* Appends RST_STREAM, and drops what the session has of the stream. */
void session_frames_reset(struct session *s, struct http2_stream *stream, unsigned fault);
