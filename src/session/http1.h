/* SPDX-License-Identifier: MIT
 *
 * HTTP/1.1 of one connection, between a transport and the answers. Bytes of requests go in, and the
 * session's output buffer fills. session/session.c is the transport of plain connections, and
 * session/tls.c that of TLS.
 *
 * Private to session/.
 */
#pragma once

#include "session/buffer.h"
#include "session/input.h"
#include "session/session.h"

struct session_shared;

/* What the deadline of the session is for. */
enum session_phase {
    SESSION_IDLE,
    SESSION_HANDSHAKE, /* of TLS */
    SESSION_HEAD,
    SESSION_BODY,
    SESSION_SENDING,
    SESSION_PENDING, /* another thread computes the answer, or reads its file */
    SESSION_LINGERING
};

/* A connection is ready for its first request. */
void session_http1_begin(struct session *s, uint64_t now_ns);

/* The most bytes that session_http1_feed accepts while there is no output. */
static inline size_t session_http1_room(const struct session *s)
{
    return SESSION_INPUT_MAX - (s->input ? s->input->len : 0);
}

/* As session_feed. It consumes all of `in`, and keeps what it cannot use yet. */
unsigned session_http1_feed(struct session *s, struct span in, uint64_t now_ns);

/* The connection begins with bytes that are no request: counts the fault, answers 400 with `text`,
 * and ends the connection. */
unsigned session_http1_refuse(struct session *s, enum http_fault fault, struct span text,
                              uint64_t now_ns);

/* All of the output, if there is any, has been sent: counts the answers, and continues with the
 * input that was kept. */
unsigned session_http1_sent(struct session *s, uint64_t now_ns);

/* The answer continues with pages of a file that are not in memory (session/pages.h): waits for
 * them. Returns what the session wants. */
unsigned session_http1_await_pages(struct session *s, uint64_t now_ns);

/* Whether nothing can be sent until an answer that is pending is ready. */
bool session_http1_waits(const struct session *s);

/* As session_resume. */
unsigned session_http1_resume(struct session *s, uint64_t now_ns);

/* What to do next: send the output, wait for input, or end. */
unsigned session_http1_continue(struct session *s, uint64_t now_ns);

/* As session_expire, when the deadline has passed. */
unsigned session_http1_expire(struct session *s, uint64_t now_ns);

/* The session has nothing more to send: closes the connection, or lingers. */
unsigned session_http1_end(struct session *s, uint64_t now_ns);

/* Discards input after the half-close. */
unsigned session_http1_linger(struct session *s, size_t bytes);

/* How long the connection may stay idle. */
uint64_t session_http1_idle_ns(const struct session_shared *shared);

/* Releases the output, in which nothing is lent. Unsent bytes are lost. */
void session_http1_drop_output(struct session *s);

/* An answer cannot be completed: the connection must be closed. */
unsigned session_http1_cut(struct session *s);

/* Releases input and output. Unsent answers are logged as cut. */
void session_http1_drop(struct session *s);

/* Whether the output has bytes that no transport has taken. */
static inline bool session_http1_has_output(const struct session *s)
{
    return s->output && (session_buffer_has_bytes(s->output) || s->output->answer.open);
}

/* A client has taken some of the output: its deadline moves. */
void session_note_progress(struct session *s, size_t bytes, uint64_t now_ns);
