/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 of one connection, between a transport and the answers, as session/http1.h is for
 * HTTP/1.1. Frames go in, requests come out of http2/, and the session's output buffer fills with
 * frames. Large payloads are loans, and no answer is open in the output. A transport that has sent
 * the output, or sealed it, has it filled again.
 *
 * A connection begins with HTTP/2 when ALPN has chosen it, or on a plain listener where
 * session_shared's `h2c` is set and the client's first bytes are the preface.
 *
 * Private to session/.
 */
#pragma once

#include "http2/connection.h"
#include "http2/table.h"
#include "session/buffer.h"
#include "session/line.h"
#include "session/session.h"

struct session_body;
struct session_pending;
struct session_stream;

/* What the session knows about one open stream. */
struct session_http2_place {
    struct session_stream *answer;   /* a body that is not in frames yet, or NULL */
    struct session_body *body;       /* with the request that waits for its end, or NULL */
    struct session_pending *pending; /* the request whose answer is pending, or NULL */
    uint32_t discarded;              /* bytes of a body that arrive during or after its answer */
    bool open;
    bool navigates;  /* of `pending`: a browser opens a page */
    uint8_t lingers; /* linger times that have begun since the answer was complete; 0: it is not */
};

/* The streams of one connection, or unused in a thread. */
struct session_http2_streams {
    struct http2_streams table;
    struct session_http2_place place[HTTP2_STREAMS_MAX + 1];
};

struct session_http2 {
    struct http2_connection connection;
    struct http2_table table;
    struct session_http2_streams *streams; /* NULL while the connection needs no table */
    uint64_t linger_ns;     /* while streams linger: when the first of them may be reset */
    uint64_t scan_ns;       /* while answers wait: when the first of them may be stalled */
    uint64_t send_due_ns;   /* while answers are under way */
    uint64_t head_due_ns;   /* while an unfinished frame waits, or the end; else UINT64_MAX */
    uint64_t body_limit_ns; /* while requests wait for their bodies: when the first is overdue */
    uint64_t body_due_ns;   /* then all are, for their rate; else UINT64_MAX */
    uint64_t pending_ns;    /* while answers are pending: when the first of them is overdue */
    uint64_t body_bytes;    /* received of bodies since body_due_ns last moved */
    size_t waiting_bytes;   /* of heads that wait for the end of their body */
    size_t output_max;      /* nothing is added behind so many bytes of output */
    unsigned bodies;        /* requests that wait for the end of their body */
    unsigned answers;       /* answers with a body that waits */
    unsigned fetching;      /* of them: for pages of a file (session/pages.h) */
    unsigned lingering;     /* streams with a complete answer whose request continues */
    uint8_t peer_len;       /* of `peer`; 0: it is not known yet */
    char peer[SESSION_LINE_PEER_MAX]; /* the client's address, for the log */
    bool answering;                   /* send_due_ns is set */
    bool stalled;                     /* the windows keep all answers from continuing */
    bool began_block;                 /* the first header block was sent */
    bool shortened; /* the final GOAWAY was sent, without waiting for the client */
    bool full;      /* kept input waits for space in the output */
    bool sealing;   /* what is added to the output is sealed in the same call */
};

/* Begins with HTTP/2. False: out of memory. */
bool session_http2_begin(struct session *s, uint64_t now_ns);

/* The most bytes that session_http2_feed accepts now. */
size_t session_http2_room(const struct session *s);

/* As session_feed. */
unsigned session_http2_feed(struct session *s, struct span in, uint64_t now_ns);

/* As session_resume. Consumes the input that was kept, also by HTTP/1.1 before HTTP/2 began. */
unsigned session_http2_resume(struct session *s, uint64_t now_ns);

/* Whether bodies or kept input wait for space in the output. */
static inline bool session_http2_waits(const struct session *s)
{
    return s->http2->answers > 0 || s->http2->full;
}

/* Adds what waits to the output, as long as that has less than `most` bytes: answers to kept input,
 * and bodies. Returns whether the output has bytes. A transport that seals calls it when it has
 * sealed the output. With TLS the caller seals `most` bytes before it returns. */
bool session_http2_fill(struct session *s, size_t most, uint64_t now_ns);

/* The output has been sent, `bytes` of it in the last send: counts the answers that it completed,
 * and fills it again. */
unsigned session_http2_sent(struct session *s, size_t bytes, uint64_t now_ns);

/* What to do next. */
unsigned session_http2_continue(struct session *s, uint64_t now_ns);

/* As session_drain. */
unsigned session_http2_drain(struct session *s, uint64_t now_ns);

/* As session_expire, when the deadline has passed. */
unsigned session_http2_expire(struct session *s, uint64_t now_ns);

/* Releases everything but input and output. Unsent answers are logged as cut. */
void session_http2_drop(struct session *s);

/* Takes the body of the request from its stream. The caller frees it. */
struct session_body *session_http2_take_body(struct session_http2 *h,
                                             struct session_http2_place *place);

/* Drops what the session knows about a stream that is closed. */
void session_http2_forget(struct session *s, unsigned place);

/* The connection has failed or ends: no stream continues. */
void session_http2_drop_streams(struct session *s);

/* What the session wants while it has output. */
static inline unsigned session_http2_want(const struct session *s)
{
    return SESSION_WRITE | (s->ended || s->closing ? 0 : SESSION_READ);
}

static inline struct session_http2_place *session_http2_place(const struct session_http2 *h,
                                                              const struct http2_stream *stream)
{
    return &h->streams->place[http2_stream_place(&h->streams->table, stream)];
}
