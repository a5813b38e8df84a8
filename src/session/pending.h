/* SPDX-License-Identifier: MIT
 *
 * A request whose answer is pending: another thread finds out what the answer depends on. That is a
 * task (task/task.h) for a password, and a ticket (site/fetch.h) for a file that is not in memory.
 * The request waits here with a copy of its head. When the task or the fetch is done, or its time
 * is over, the request is planned again from its start. It keeps the results that it has waited
 * for. So each plan gets further than the one before.
 *
 * A request of HTTP/1.1 is in `pending` of its session, and one of HTTP/2 is at its stream.
 *
 * Private to session/.
 */
#pragma once

#include "session/access.h"
#include "session/answer.h"
#include "site/fetch.h"

/* How long an answer may be pending. Then it is 503. */
#define SESSION_PENDING_NS UINT64_C(30000000000)

struct session_pending {
    struct task *task;                   /* a comparison; NULL: none */
    struct site_fetch_ticket *tickets;   /* lookups, newest first */
    struct site_fetch_ticket *ticket;    /* the one that it waits for; NULL: none */
    const struct session_access *access; /* the password that `verdict` is about */
    enum session_access_verdict verdict;
    bool limited, metered; /* as in the exchange, so that it is counted once, and refused again */
    bool refused;          /* a listing was, and the request waits for the page of the 503 */
    bool late;             /* its time is over */
    uint8_t cache; /* as in the exchange: the lookup is counted; the error page is not there */
    uint64_t retry_ns;
    uint64_t limit_ns;
    uint64_t since_ns;  /* when it began to wait for the disk; 0: it does not */
    uint64_t waited_ns; /* for the disk, so far */
    uint64_t id;        /* of the request: each plan has the same */
    uint64_t began_ns;  /* when the first byte of the request arrived */
    bool body_read;
    struct http_request request;
    char head[]; /* the bytes that `request` was parsed from */
};

/* Makes the request of `x` wait: again, or for the first time. NULL: out of memory. The caller sets
 * `task` or `ticket`. */
struct session_pending *session_pending_begin(const struct session_exchange *x);

/* Undoes session_pending_begin for a request that had not waited before. */
void session_pending_undo(const struct session_exchange *x, struct session_pending *pending);

/* The answer is pending. The next plan notes the fault of the request again; until then the answer
 * to another request must not take it. */
void session_pending_wait(struct session_exchange *x, struct session_pending *pending);

/* How long the request has waited for the disk before it was planned. */
static inline uint64_t session_pending_waited_ns(const struct session_exchange *x)
{
    return __builtin_expect(x->resumed != NULL, 0) ? x->resumed->waited_ns : 0;
}

/* The request is about to be planned again. */
void session_pending_stop(const struct session *s, struct session_pending *pending);

/* Frees *ref, with its task, and clears the copy of the head. The results of its tickets stay
 * valid until the end of the turn. Accepts a NULL in *ref. */
void session_pending_drop(struct session *s, struct session_pending **ref);

/* Whether the request can be planned again. */
bool session_pending_is_over(const struct session *s, const struct session_pending *pending);

/* The time is over: the task is cancelled, and the tickets are dropped. */
void session_pending_give_up(const struct session *s, struct session_pending *pending);

static inline uint64_t session_pending_limit_ns(const struct session_pending *pending)
{
    return pending->limit_ns;
}
