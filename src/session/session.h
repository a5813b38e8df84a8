/* SPDX-License-Identifier: MIT
 *
 * The one interface between the concurrency models and HTTP. A session is the HTTP of one
 * connection. Bytes and times go in. Pieces to send come out. A session holds no socket, reads no
 * clock and starts no thread. So every model drives it with the same calls, whether the model
 * blocks, waits for readiness or waits for completions:
 *
 *     want = session_feed(s, bytes, now)        bytes that arrived; empty = end of input
 *     while (want & SESSION_WRITE)
 *         out  = session_output(s)              what to send next
 *         want = session_sent(s, count, now)    how much of it the kernel took
 *
 * The result of each call replaces the last one. It is a set:
 *
 *     SESSION_READ        wait for input, at most session_room() bytes of it; none while that is 0
 *     SESSION_WRITE       send. With SESSION_READ, input does not wait until everything is sent:
 *                         the client may send only after it has read, or read only after it has
 *                         sent. A file range comes only with SESSION_WRITE alone.
 *     SESSION_HALF_CLOSE  alone: shutdown(SHUT_WR), then as SESSION_READ. The session discards what
 *                         still arrives. A close with unread input would send a reset, and the
 *                         client could lose the last answer (RFC 9112 section 9.6).
 *     SESSION_CLOSE       alone: close the descriptor and call session_close
 *     SESSION_WAIT        alone: the next answer is pending. Neither receive nor send, and call
 *                         session_resume when the thread's session_thread_next_ready returns the
 *                         session. Only a deadline, or the loss of the connection, comes before.
 *
 * After the end of input no result has SESSION_READ.
 *
 * An answer is pending while another thread checks a password, fetches a file or a listing
 * (site/fetch.h), or reads pages of a file (session/pages.h).
 * HTTP/1.1 then wants SESSION_WAIT, when earlier answers are sent. With HTTP/2 only that stream
 * waits, and the session wants the same as without it: SESSION_WAIT only after the end of input,
 * when nothing else is left to send. Answers are pending only in a thread that
 * has a `home` (session/thread.h). In other threads the session itself computes, in its call.
 *
 * Requests that arrive together are answered together: session_feed parses as many as the output
 * buffer has space for before it asks to write.
 *
 * Threads: a session belongs to one session_thread (session/thread.h) at a time.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct session_thread;
struct session_input;
struct session_buffer;
struct session_body;
struct session_tls;
struct session_http2;
struct session_pending;

enum {
    SESSION_READ = 1,
    SESSION_WRITE = 2,
    SESSION_HALF_CLOSE = 4,
    SESSION_CLOSE = 8,
    SESSION_WAIT = 16
};

/* The client's address, for the log and for the limits of each address. */
struct session_peer {
    uint8_t family; /* 4, 6, or 0 for a Unix socket */
    bool limited;   /* limits apply, and the connection is counted (session/limits.h) */
    uint8_t address[16];
    uint16_t place[2]; /* the address' numbers there */
};

/* The address as one number, for memory that processes share (session_thread's `counted`); 0: it
 * is not counted. */
static inline uint32_t session_peer_pack(const struct session_peer *peer)
{
    return peer->limited ? 1u << 31 | (uint32_t)peer->place[1] << 15 | peer->place[0] : 0;
}

static inline struct session_peer session_peer_unpack(uint32_t packed)
{
    const uint16_t mask = (1 << 15) - 1;
    return (struct session_peer){
        .limited = packed != 0,
        .place = { (uint16_t)(packed & mask), (uint16_t)(packed >> 15 & mask) },
    };
}

/* Where a connection comes from. */
struct session_origin {
    struct session_peer peer;
    bool tls;     /* it came through a listener for TLS */
    bool proxied; /* it begins with a PROXY header (session/proxy.h) */
};

/* One connection. The caller owns the storage, and session_open fills it. An idle session holds
 * no buffer. */
struct session {
    struct session_thread *thread;
    struct session_input *input;     /* unparsed bytes; NULL when there are none */
    struct session_buffer *output;   /* NULL when there is nothing to send */
    struct session_body *body;       /* a request body that is being discarded, or NULL */
    struct session_tls *tls;         /* NULL: plain HTTP, or no byte has arrived */
    struct session_http2 *http2;     /* NULL: HTTP/1.1, or the protocol is not known yet */
    struct session_pending *pending; /* of HTTP/1.1: the request whose answer is, or NULL */
    uint64_t deadline_ns;
    uint64_t idle_since_ns;  /* while no request is under way */
    uint64_t retires_ns;     /* no request follows the one that is under way then */
    uint32_t answers;        /* so far */
    uint32_t lingered_bytes; /* discarded since the half-close */
    uint32_t progress_bytes; /* sent since the deadline last moved */
    uint32_t taken_bytes;    /* of session_note_taken, when the deadline last moved for them */
    uint32_t pending_count;  /* answers */
    uint8_t phase;           /* what the deadline is for; private to session/ */
    bool ended;              /* the client sends no more */
    bool closing;            /* the connection ends when the output is sent */
    bool lingering;          /* it ends with SESSION_HALF_CLOSE: the client may still send */
    bool refusing : 1;       /* the next request gets a 503, and is the last */
    bool tls_wanted : 1;     /* struct session_origin's `tls` */
    bool proxied : 1;        /* the PROXY header is not complete */
    bool forwards : 1;       /* its requests may have other clients (session/forwarded.h) */
    bool active;             /* a request is under way, for the statistics */
    struct session_peer peer;
};

/* The most pieces of memory in one output. */
enum { SESSION_PIECES = 16 };

/* What to send next, in this order. The pieces stay where they are until session_sent, session_cut
 * or session_close, also across session_feed. session_hold keeps them valid after this turn. It is
 * aligned as a large local variable is: otherwise gcc makes the result elsewhere, and copies it. */
struct session_out {
    _Alignas(16) struct span piece[SESSION_PIECES]; /* memory; none of them is empty */
    unsigned count;                                 /* of the pieces */
    int file_fd;                                    /* then this range of a file; -1: none */
    uint64_t file_offset;
    uint64_t file_len;
    bool last; /* the connection closes after these pieces: MSG_MORE lets FIN ride along */
};

/* The most that session_room returns, in bytes, and the least beside 0. */
enum { SESSION_READ_MAX = 32 * 1024, SESSION_READ_LEAST = 4 * 1024 };

/* Begins a connection, and sets the deadline for its first request. */
void session_open(struct session *s, struct session_thread *thread, struct session_origin origin,
                  uint64_t now_ns);

/* Where the connection comes from, as session_open got it. */
static inline struct session_origin session_origin_of(const struct session *s)
{
    return (struct session_origin){ s->peer, s->tls_wanted, s->proxied };
}

/* Ends a connection, however it ended. Logs an answer that was cut short, and releases every
 * buffer and reference. */
void session_close(struct session *s);

/* How many bytes session_feed accepts now. 0 means: send first. */
size_t session_room(const struct session *s);

bool session_tls_has_output(const struct session *s); /* session/tls.h */

/* True while session_output has something to send. */
static inline bool session_has_output(const struct session *s)
{
    return s->output || (__builtin_expect(s->tls != NULL, 0) && session_tls_has_output(s));
}

/* Processes bytes that arrived, at most session_room of them, also while output is being sent.
 * Borrows `in` for this call. An empty span means the end of input. */
unsigned session_feed(struct session *s, struct span in, uint64_t now_ns);

/* What to send while the session wants SESSION_WRITE. */
struct session_out session_output(const struct session *s);

/* The kernel took `bytes` of session_output, counted over the pieces and then the file range. 0
 * is allowed, for a send that would block. A file range that turned out shorter is reported with
 * session_cut. */
unsigned session_sent(struct session *s, size_t bytes, uint64_t now_ns);

/* Keeps what session_output lends, or would lend next, valid past this turn of the thread's loop,
 * until the session continues. A model calls it for a send that finishes later, and after a
 * session_feed during a send. session_sent does the same after a partial send. */
void session_hold(struct session *s);

/* Whether a part of the answer has been sent, and the rest has not. */
bool session_delayed(const struct session *s);

/* No thread can serve this connection. Its next request is answered 503 with Retry-After, and
 * then it is closed. */
void session_refuse(struct session *s);

/* Moves the session to another thread. No call may be under way, and session_hold must have been
 * called if output is lent. */
static inline void session_move(struct session *s, struct session_thread *thread)
{
    s->thread = thread;
}

/* The file ended before its announced range did. The connection must be closed. */
unsigned session_cut(struct session *s);

/* Receiving or sending failed with this errno. Counts it when the client or the network caused
 * it. The caller then closes the connection. */
void session_failed(const struct session *s, int error);

/* Whether an answer is pending. */
static inline bool session_is_pending(const struct session *s)
{
    return s->pending_count > 0;
}

/* Answers that were pending may be ready. Continues with them, and returns what the session wants.
 * May be called without a reason, also while output is being sent. */
unsigned session_resume(struct session *s, uint64_t now_ns);

/* When session_expire is due, in nanoseconds of the monotonic clock. The deadline moves as the
 * session continues: check again when it is reached. */
static inline uint64_t session_deadline_ns(const struct session *s)
{
    return s->deadline_ns;
}

/* The kernel takes no more output, and the client has taken `bytes` of what the kernel had since it
 * took the last. A deadline of the output that has passed moves if that is progress. */
void session_note_taken(struct session *s, uint64_t bytes, uint64_t now_ns);

/* The deadline has passed. Answers 408 to an unfinished head, and closes the connection
 * otherwise. */
unsigned session_expire(struct session *s, uint64_t now_ns);

/* Whether the client learns before the end that the connection ends: in HTTP/2, not in HTTP/1.1. */
static inline bool session_announces_end(const struct session *s)
{
    return s->http2 != NULL;
}

/* The server drains. Announces the end of the connection now, also while its answers wait for the
 * client: GOAWAY (RFC 9113 section 6.8). Returns what the session wants then. 0: nothing has
 * changed, because the end is announced already, or the protocol cannot announce it. A connection
 * that the client uses later announces the end by itself. */
unsigned session_drain(struct session *s, uint64_t now_ns);

/* True between requests with nothing to send: the connection can be closed without losing
 * anything. */
bool session_idle(const struct session *s);

/* Since when session_idle has been true; UINT64_MAX: it is false. */
uint64_t session_idle_since_ns(const struct session *s);
