/* SPDX-License-Identifier: MIT
 *
 * Writing answers. They go into the session's output buffer, head and body, and are logged.
 * session/plan.c decides what to answer.
 *
 * Private to session/.
 */
#pragma once

#include "http/target.h"
#include "session/buffer.h"
#include "session/session.h"
#include "session/thread.h"

/* Bytes that are read of a list field in several lines. */
enum { SESSION_LIST_MAX = 1024 };

/* The line of answers to OPTIONS, and of a 405. */
#define SESSION_ANSWER_ALLOW "Allow: GET, HEAD, OPTIONS\r\n"

struct http2_stream;
struct rules_match;
struct session_ready_answer;
struct session_pending;

/* How an answer is put into frames. It is written as HTTP/1.1 into scratch memory, the exchange's
 * `out`, and session/frames.h puts it into the output, counts it and logs it. */
struct session_framing {
    struct http2_stream *stream;
    unsigned status;            /* of an answer that is whole in `out` */
    uint64_t body_bytes;        /* its body */
    bool done;                  /* the answer is in the output already */
    bool navigates;             /* a browser opens a page */
    struct session_peer client; /* the storage of the exchange's `client` */
};

/* One request and its answer. */
struct session_exchange {
    struct session *session;
    struct session_thread *thread;
    struct session_buffer *out;         /* has SESSION_ANSWER_ROOM free bytes */
    const struct http_request *request; /* NULL when the bytes were no request */
    const char *head;                   /* the bytes that it was parsed from */
    struct span request_line;           /* for the log; may be empty */
    struct http_target target;          /* zero until it is resolved */
    const struct session_site *site;    /* NULL until it is known */
    struct span origin_line;            /* for a script of an allowed origin; usually empty */
    const struct span *dictionary_line; /* of a 200; usually NULL (session/delta.h) */
    const struct rules_match *match;   /* the rules of the path; NULL: not needed so far, or none */
    const struct session_peer *client; /* NULL: the session's peer (session/forwarded.h) */
    uint64_t id;                       /* for the log and error pages */
    uint64_t began_ns;                 /* when its first byte arrived */
    bool close;                        /* the connection ends with this answer */
    bool head_only;                    /* the method is HEAD; set when only that could be read */
    bool body_read;                    /* the body of the request has already been read */
    bool by_accept;                    /* the answer was selected by Accept */
    bool secure;                       /* the client has sent the request over TLS */
    bool scheme_named;                 /* a proxy says so, or that it has not */
    struct session_framing *framing;   /* of HTTP/2; NULL: HTTP/1.1 */
    const struct session_access *access; /* the password that is needed; NULL: none so far */
    struct site_entry *kept; /* from the cache, until the next quiesce; NULL: not looked up */
    bool admitted;           /* the password is right */
    uint8_t cache;           /* enum log_cache: whether the cache had the entry */
    bool limited;            /* the address has sent too many requests to this server */
    bool metered;            /* a rule has counted the request for its address, */
    uint64_t retry_ns;       /* which may send the next one after this time. 0: not too many */
    bool fetches;            /* a lookup is pending, or was (session/fetch.h) */
    bool crowded;            /* too many lookups wait, and one was refused */
    bool refused;            /* a listing was: there are too many */
    bool unavailable;        /* the answer is 503, and its page is looked up */
    uint8_t verdict;         /* enum session_access_verdict, of `access` */
    struct session_pending *resumed; /* the request has waited; NULL: it is new */
    struct session_pending *pending; /* set by the plan: there is no answer yet */
};

/* The client of the request, for the log, the limits and the rules. */
static inline const struct session_peer *session_answer_client(const struct session_exchange *x)
{
    return x->client ? x->client : &x->session->peer;
}

/* The connection ends with this answer, and what the client still sends is discarded. For HTTP/2
 * this concerns the stream alone. */
static inline void session_answer_is_last(struct session_exchange *x)
{
    x->close = true;
    if (__builtin_expect(!x->framing, 1))
        x->session->lingering = true;
}

/* Answers with one variant of an entry, whole or in part, as the request's conditions and ranges
 * require: 200, 206, 304, 412 or 416. When `owned`, takes the caller's reference. Otherwise the
 * entry must stay valid until the next quiesce. */
void session_answer_entry(struct session_exchange *x, struct site_entry *entry, bool owned);

/* Answers HEAD for a listing that is not rendered. The fields that only a rendered listing has are
 * left out (RFC 9110 section 9.3.2). */
void session_answer_listing_head(struct session_exchange *x, struct span type);

/* Whether the answer depends on more than the path: the request has a condition or a range. */
bool session_answer_is_conditional(const struct session_exchange *x);

/* Answers with a status and a page: the site's own page if it has one, or the built-in one. */
void session_answer_status(struct session_exchange *x, enum http_status status);

/* The same with `extra`, lines of the head. Without effect if the answer is pending. It may become
 * pending in the call. */
void session_answer_page(struct session_exchange *x, enum http_status status, struct span extra);

/* The same, and this entry is the page. When `owned`, takes the caller's reference. */
void session_answer_own_page(struct session_exchange *x, enum http_status status, struct span extra,
                             struct site_entry *page, bool owned);

/* Answers with a status and one line of plain text. */
void session_answer_text(struct session_exchange *x, enum http_status status, struct span text);

/* Answers with the status of a redirect, and this field line, `Location: ...` with its CRLF. There
 * is no page: clients follow. */
void session_answer_located(struct session_exchange *x, enum http_status status,
                            struct span location);

/* Answers with a ready-made answer. `location` is the line in place of its own, or empty. */
void session_answer_ready(struct session_exchange *x, const struct session_ready_answer *ready,
                          struct span location);

/* Answers 301 to the same path with a slash at its end. */
void session_answer_redirect(struct session_exchange *x);

/* Answers 308 to the same path and query at `origin`: scheme, host and port. `lines` are added to
 * the head. */
void session_answer_redirect_to(struct session_exchange *x, struct span origin, struct span lines);

/* The place of its site in the statistics; 0: it has none. */
unsigned session_answer_site(const struct session_exchange *x);

/* Answers OPTIONS. */
void session_answer_options(struct session_exchange *x);

/* Opens an answer in `x->out` whose body is not behind its head. The caller sets the body. */
struct session_answer *session_answer_open(struct session_exchange *x, unsigned status);

/* Appends the framing of the next part of a multipart/byteranges answer to `text`, and makes the
 * answer's memory or file range that part. Short parts in memory are appended, too, as long as
 * `text` has space. False when no part is left. */
bool session_answer_next_part(struct session_answer *answer, struct buf *text);

/* The same into the output buffer, when the part before it is sent. */
bool session_answer_stage_part(struct session_buffer *out);

/* The open answer is sent or has failed. Logs it, and releases what it holds. */
void session_answer_end(struct session_thread *thread, struct session_answer *answer);
