/* SPDX-License-Identifier: MIT
 *
 * The seam. A session is one connection's HTTP, and nothing else: bytes and
 * times come in, pieces to send come out. It holds no descriptor of a socket,
 * reads no clock and starts no thread, so every concurrency model, blocking,
 * readiness-based or completion-based, drives the same one with the same calls:
 *
 *     want = session_feed(s, bytes, now)        what arrived; empty = end of input
 *     while (want == WANT_WRITE)
 *         out  = session_output(s)              what to send next
 *         want = session_sent(s, count, now)    how much of it the kernel took
 *     WANT_READ        wait for input, at most session_room() bytes of it
 *     WANT_HALF_CLOSE  shutdown(SHUT_WR), then as WANT_READ: what still comes is
 *                      read and dropped, so that the last answer is not lost to
 *                      a reset (RFC 9112 section 9.6)
 *     WANT_CLOSE       close the descriptor and call session_close
 *
 * Requests that arrive together are answered together: feed parses as many as
 * the output buffer has room for before it asks to write.
 *
 * Threads: a session belongs to one thread (session/thread.h) at a time.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct session_thread;
struct session_input;
struct session_buffer;
struct http_body;

enum session_want { WANT_READ, WANT_WRITE, WANT_HALF_CLOSE, WANT_CLOSE };

/* Who is at the other end, for the log. */
struct session_peer {
    uint8_t family; /* 4, 6, or 0 for a Unix socket */
    uint8_t address[16];
};

/* One connection. The caller's storage; session_open fills it. An idle one is
 * this struct and no buffer. */
struct session {
    struct session_thread *thread;
    struct session_input *input;   /* held only while bytes wait: an unfinished head, or requests
                                      behind a full output */
    struct session_buffer *output; /* held only while there is something to send */
    struct http_body *body;        /* a request body being discarded; NULL when none */
    uint64_t deadline_ns;
    uint32_t lingered_bytes; /* read and dropped since the half-close */
    uint32_t progress_bytes; /* sent since the deadline was last moved */
    uint8_t phase;           /* what the deadline is for; session.c's own */
    bool ended;              /* the peer sends no more */
    bool closing;            /* no request is answered after what is in the output */
    bool lingering;          /* when it closes, it does so slowly: the peer may still send */
    bool refusing;           /* the next request is answered 503, and is the last */
    bool active;             /* not between requests: for the statistics */
    bool answered;           /* a request, at least: likewise */
    struct session_peer peer;
};

/* What to send next, in this order. Valid until the next call on the session. */
struct session_out {
    struct span piece[2]; /* memory; an empty piece ends the list */
    int file_fd;          /* then this range of a file; -1 when there is none */
    uint64_t file_offset;
    uint64_t file_len;
    bool last; /* the connection closes right behind these pieces: they may be held back
                             (MSG_MORE) until the close sends them together with its FIN */
};

/* The most that session_room gives. */
enum { SESSION_READ_MAX = 32 * 1024 };

/* A connection begins: sets the deadline for its first request. */
void session_open(struct session *s, struct session_thread *thread, struct session_peer peer,
                  uint64_t now_ns);

/* The connection is gone, for whatever reason: logs what was cut short, gives
 * back every buffer and reference. */
void session_close(struct session *s);

/* Bytes accepted now; 0 means: write first. */
size_t session_room(const struct session *s);

/* Takes what arrived. Borrows `in` (at most session_room bytes) for this call
 * only; an empty span is the end of input. */
enum session_want session_feed(struct session *s, struct span in, uint64_t now_ns);

/* What to send after WANT_WRITE. */
struct session_out session_output(const struct session *s);

/* The kernel took `bytes` of session_output, counted over pieces and file range
 * in order; 0 is allowed (it would have blocked). A file range that turned out
 * shorter is told by session_cut. */
enum session_want session_sent(struct session *s, size_t bytes, uint64_t now_ns);

/* What session_output lends stays valid past this turn of the thread's loop, until the session
 * moves on: for a send that is submitted now and finishes later. session_sent does the same after
 * a partial send. */
void session_hold(struct session *s);

/* There is nobody to serve this connection: its next request is answered 503
 * with Retry-After, and it is closed. */
void session_refuse(struct session *s);

/* Another thread goes on with the session, which neither is in the middle of a call nor has lent
 * anything that is not held. */
static inline void session_move(struct session *s, struct session_thread *thread)
{
    s->thread = thread;
}

/* The file ended before its announced range did: the connection cannot be saved. */
enum session_want session_cut(struct session *s);

/* Receiving or sending has failed with this `error` (errno): counted, if it was the peer. The
 * connection is then closed. */
void session_failed(const struct session *s, int error);

/* When session_expire is due (monotonic, nanoseconds). It moves as the session
 * goes on: check again when it is reached. */
static inline uint64_t session_deadline_ns(const struct session *s)
{
    return s->deadline_ns;
}

/* The deadline has passed: 408 or a plain close, by what was going on. */
enum session_want session_expire(struct session *s, uint64_t now_ns);

/* Between requests, with nothing to send: may be closed without losing anything. */
bool session_idle(const struct session *s);
