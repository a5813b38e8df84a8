/* SPDX-License-Identifier: MIT */
#include "session/exchange.h"

#include "session/answer.h"
#include "session/body.h"
#include "session/forwarded.h"
#include "session/pending.h"
#include "session/plan.h"
#include "session/tally.h"

static inline struct session_exchange begin_exchange(struct session *s, uint64_t began_ns,
                                                     const struct session_pending *resumed)
{
    return (struct session_exchange){
        .session = s,
        .thread = s->thread,
        .out = s->output,
        .id = resumed == NULL ? session_thread_next_id(s->thread) : resumed->id,
        .began_ns = began_ns,
        .secure = s->tls_wanted,
    };
}

struct session_exchange session_exchange_begin(struct session *s, uint64_t began_ns,
                                               const struct session_pending *resumed)
{
    s->thread->turn.usable = false;
    return begin_exchange(s, began_ns, resumed);
}

static void refuse_exchange(struct session_exchange *x)
{
    session_answer_is_last(x);
    session_answer_status(x, HTTP_SERVICE_UNAVAILABLE);
}

/* The rare cases of a session. True: the exchange is answered. */
static bool is_refused(struct session_exchange *x, struct session_peer *client)
{
    if (x->session->forwards)
        session_forwarded_find(x, client);
    if (x->session->refusing)
        refuse_exchange(x);
    return x->session->refusing;
}

void session_exchange_refuse(struct session *s, uint64_t began_ns)
{
    struct session_exchange x = begin_exchange(s, began_ns, NULL);
    refuse_exchange(&x);
}

/* `resumed`: the request has waited for its answer; NULL: it is new. */
static inline void answer_request(struct session *s, const struct http_request *request,
                                  const char *head, uint64_t began_ns, bool body_read,
                                  struct session_pending *resumed)
{
    struct session_exchange x = begin_exchange(s, began_ns, resumed);
    x.request = request;
    x.head = head;
    x.request_line = span_of(head + request->line.at, request->line.len);
    x.body_read = body_read;
    x.resumed = resumed;
    x.fetches = resumed != NULL;
    struct session_peer client;
    if (__builtin_expect(s->refusing || s->forwards, 0) && is_refused(&x, &client))
        return;
    struct http_body body;
    session_plan(&x, &body);
    s->pending = x.pending;
    if (__builtin_expect(body.kind == HTTP_BODY_NONE || s->closing || x.pending, 1))
        return;
    s->body = session_body_new(body, NULL, NULL, 0);
    if (!s->body)
        s->closing = s->lingering = true;
}

void session_exchange_answer(struct session *s, const struct http_request *request,
                             const char *head, uint64_t began_ns, bool body_read)
{
    answer_request(s, request, head, began_ns, body_read, NULL);
}

void session_exchange_resume(struct session *s)
{
    struct session_pending *waited = s->pending;
    s->pending = NULL;
    s->thread->turn.usable = false;
    session_pending_stop(s, waited);
    answer_request(s, &waited->request, waited->head, waited->began_ns, waited->body_read, waited);
    if (s->pending != waited)
        session_pending_drop(s, &waited);
}

void session_exchange_answer_framed(struct session_exchange *x, const struct http_request *request,
                                    const char *head)
{
    struct http_body body;
    x->request = request;
    x->head = head;
    const struct session *s = x->session;
    if (__builtin_expect(s->refusing || s->forwards, 0) && is_refused(x, &x->framing->client))
        return;
    session_plan(x, &body);
}

static void count_unreadable(const struct session *s, enum http_status status)
{
    stats_writer_add(&s->thread->stats,
                     STATS_UNREADABLE_FIRST + stats_counters_status_place(status), 1);
}

void session_exchange_fail_framed(struct session_exchange *x, enum http_status status)
{
    count_unreadable(x->session, status);
    session_answer_status(x, status);
}

/* An exchange with bytes that are no request. Its answer ends the connection. */
static struct session_exchange begin_failed(struct session *s, enum http_status status,
                                            uint64_t began_ns)
{
    struct session_exchange x = begin_exchange(s, began_ns, NULL);
    count_unreadable(s, status);
    x.close = true;
    s->lingering = true;
    return x;
}

void session_exchange_fail(struct session *s, enum http_status status, struct span request_line,
                           bool head_only, uint64_t began_ns)
{
    struct session_exchange x = begin_failed(s, status, began_ns);
    x.head_only = head_only;
    x.request_line = request_line;
    session_answer_status(&x, status);
}

void session_exchange_fail_with(struct session *s, struct span text, uint64_t began_ns)
{
    struct session_exchange x = begin_failed(s, HTTP_BAD_REQUEST, began_ns);
    session_answer_text(&x, HTTP_BAD_REQUEST, text);
}

void session_exchange_fail_waiting(struct session *s, enum http_status status)
{
    const struct session_waiting *waiting = s->body->waiting;
    const struct http_request *request = &waiting->request;
    session_exchange_fail(s, status, span_of(waiting->head + request->line.at, request->line.len),
                          request->method == HTTP_HEAD, waiting->began_ns);
}
