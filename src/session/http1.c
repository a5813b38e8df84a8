/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. Input is consumed from the front. The rest of a request body is discarded
 * first. Then heads are parsed and answered, one after the other, into the output buffer. This
 * stops when the input is consumed, when an answer does not fit, or when the connection must end.
 * Unconsumed bytes are kept in `input`. When the output is sent, the session continues with them.
 * Between requests a connection has neither buffer.
 *
 *   IDLE --first byte--> HEAD --whole head--> (answer) --> SENDING --> IDLE
 *                          |-- deadline: 408                  |--> BODY --> IDLE
 *                          |-- chunked --> BODY --> (answer)  \--> LINGERING --> closed
 *                          \-- password --> PENDING --> (answer)
 *
 * While an answer is pending, no further request is parsed, and nothing is received.
 */
#include "session/http1.h"

#include "base/duration.h"
#include "http2/frame.h"
#include "session/body.h"
#include "session/buffer.h"
#include "session/events.h"
#include "session/exchange.h"
#include "session/http2.h"
#include "session/input.h"
#include "session/line.h"
#include "session/pages.h"
#include "session/pending.h"
#include "session/plan.h"
#include "session/proxy.h"
#include "session/tally.h"
#include "session/thread.h"
#include "session/trace.h"

#include <stdlib.h>

enum { LINGER_BYTES_MAX = 2 * 1024 * 1024 };
#define LINGER_NS UINT64_C(2000000000)

/* ---- buffers ---- */

static void drop_input(struct session *s)
{
    free(s->input);
    s->input = NULL;
}

static void drop_body(struct session *s)
{
    session_body_free(s->body);
    s->body = NULL;
}

void session_http1_drop_output(struct session *s)
{
    if (!s->output)
        return;
    session_tally_cut(&s->thread->stats, s->output);
    if (__builtin_expect(s->output->lines != NULL, 0))
        session_line_write_sent(s->thread, s->output);
    s->output->answer.cut = s->output->group_count > 0;
    session_answer_end(s->thread, &s->output->answer);
    session_buffer_give(s->thread, s->output);
    s->output = NULL;
}

/* Unsent bytes are lost. */
static void cut_output(struct session *s)
{
    if (s->output)
        session_buffer_drop_loans(s->output);
    session_http1_drop_output(s);
}

void session_http1_drop(struct session *s)
{
    drop_input(s);
    drop_body(s);
    session_pending_drop(s, &s->pending);
    cut_output(s);
}

unsigned session_http1_cut(struct session *s)
{
    cut_output(s);
    s->closing = true;
    return SESSION_CLOSE;
}

/* ---- input ---- */

static bool has_output_room(struct session *s)
{
    if (__builtin_expect(!s->output, 1))
        s->output = session_buffer_take(s->thread);
    struct session_buffer *out = s->output;
    return out && !out->answer.open && out->len + SESSION_ANSWER_ROOM <= SESSION_BUFFER_BYTES &&
           out->group_count < SESSION_GROUPS_MAX;
}

static void fail_body(struct session *s, enum http_status status)
{
    session_tally_fault(s->thread, status == HTTP_CONTENT_TOO_LARGE ? HTTP_FAULT_BODY_LENGTH
                                                                    : HTTP_FAULT_CHUNK_FORM);
    if (s->body->waiting)
        session_exchange_fail_waiting(s, status);
    /* Otherwise the request has its answer. The client would take a second one for the answer to
     * the next request. */
    s->closing = s->lingering = true;
    drop_body(s);
}

static void end_body(struct session *s)
{
    struct session_body *body = s->body;
    s->body = NULL;
    s->thread->turn.usable = false;
    if (body->waiting)
        session_exchange_answer(s, &body->waiting->request, body->waiting->head,
                                body->waiting->began_ns, true);
    session_body_free(body);
}

/* Returns how many of `bytes` belonged to the body. */
static size_t use_body(struct session *s, struct span bytes)
{
    size_t consumed = bytes.len;
    enum http_status status;
    switch (http_body_discard(&s->body->framing, bytes, &consumed, &status)) {
    case HTTP_BODY_MORE:
        s->body->received_bytes += consumed;
        break;
    case HTTP_BODY_DONE:
        end_body(s);
        break;
    case HTTP_BODY_FAILED:
        fail_body(s, status);
        break;
    }
    return consumed;
}

/* Answers a request whose head has arrived, or makes it wait for its body. */
static void take_request(struct session *s, const struct http_request *request, const char *head,
                         uint64_t began_ns)
{
    struct http_body body;
    if (__builtin_expect(!session_plan_waits(request, head, &body) || s->refusing, 1)) {
        session_exchange_answer(s, request, head, began_ns, false);
        return;
    }
    s->phase =
        SESSION_HEAD; /* this body gets a limit of its own, also directly after another body */
    s->body = session_body_new(body, request, head, began_ns);
    if (!s->body) {
        session_exchange_refuse(s, began_ns);
    }
}

/* Why the head at the front of `bytes` is refused. */
static enum http_fault fault_of_head(const struct session *s, const struct http_request *request,
                                     struct span bytes)
{
    const enum http_fault fault = (enum http_fault)request->fault;
    return s->answers == 0 ? session_proxy_fault(bytes, fault) : fault;
}

/* Whether a connection begins with HTTP/2, by the preface. */
static bool begins_with_preface(const struct session *s, struct span in)
{
    return s->thread->shared->h2c && !s->tls_wanted && s->answers == 0 &&
           span_starts(in, span_first(HTTP2_FRAME_PREFACE, sizeof("PRI * HTTP/2.0\r\n") - 1));
}

/* Consumes what it can from the front of `bytes`, and returns how many. `request` is the
 * parser's state, and keeps it when a head is unfinished. `arrival` follows the requests. `fed`:
 * the bytes end with those that session_feed has just got. */
static size_t use_input(struct session *s, struct span bytes, struct http_request *request,
                        struct session_arrival *arrival, bool fed)
{
    size_t used = 0;
    const bool reported = fed && s->thread->turn.reported && !s->tls;
    while (used < bytes.len && !s->closing && !s->pending) {
        struct span rest = span_skip(bytes, used);
        const bool may_answer = !s->body || s->body->waiting;
        if (may_answer && !has_output_room(s)) {
            s->closing = s->closing || !s->output; /* out of memory */
            break;
        }
        if (s->body) {
            used += use_body(s, rest);
            continue;
        }
        enum http_status status;
        switch (http_request_parse(request, rest, &status)) {
        case HTTP_PARSED:
            s->thread->turn.usable = reported && used + request->line.at == 0;
            take_request(s, request, rest.at, arrival->first_ns);
            arrival->first_ns = arrival->rest_ns;
            used += request->head_len;
            if (used < bytes.len) /* otherwise the state is not used again */
                *request = (struct http_request){ 0 };
            break;
        case HTTP_PARSE_MORE:
            return used;
        case HTTP_PARSE_FAILED:
            if (used == 0 && begins_with_preface(s, rest)) {
                s->closing = !session_http2_begin(s, arrival->rest_ns);
                return 0;
            }
            session_tally_fault(s->thread, fault_of_head(s, request, rest));
            session_exchange_fail(s, status, span_of(rest.at + request->line.at, request->line.len),
                                  request->method == HTTP_HEAD, arrival->first_ns);
            break;
        }
    }
    return used;
}

/* ---- the next phase ---- */

static unsigned enter_phase(struct session *s, enum session_phase phase, uint64_t deadline_ns,
                            unsigned want)
{
    s->phase = (uint8_t)phase;
    s->deadline_ns = deadline_ns;
    return want;
}

unsigned session_http1_end(struct session *s, uint64_t now_ns)
{
    drop_input(s);
    drop_body(s);
    session_tally_set_active(s, false);
    if (!s->lingering || s->ended)
        return SESSION_CLOSE;
    return enter_phase(s, SESSION_LINGERING, now_ns + LINGER_NS, SESSION_HALF_CLOSE);
}

/* A body has a limit for the whole of it. Where it must keep a rate, each byte moves the deadline,
 * at most to SESSION_BODY_RATE_NS from now. */
static unsigned wait_for_body(struct session *s, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    struct session_body *body = s->body;
    uint64_t deadline_ns = now_ns + SESSION_BODY_RATE_NS;
    if (s->phase != SESSION_BODY) {
        body->limit_ns = now_ns + shared->body_timeout_ns;
    } else if (shared->body_rate_bytes > 0) {
        uint64_t moved_ns = s->deadline_ns +
                            body->received_bytes * DURATION_SECOND / shared->body_rate_bytes;
        deadline_ns = moved_ns < deadline_ns ? moved_ns : deadline_ns;
    }
    if (shared->body_rate_bytes == 0 || body->limit_ns < deadline_ns)
        deadline_ns = body->limit_ns;
    body->received_bytes = 0;
    return enter_phase(s, SESSION_BODY, deadline_ns, SESSION_READ);
}

uint64_t session_http1_idle_ns(const struct session_shared *shared)
{
    bool draining = atomic_load_explicit(&shared->draining, memory_order_relaxed);
    return draining && shared->drain_idle_ns < shared->idle_timeout_ns ? shared->drain_idle_ns
                                                                       : shared->idle_timeout_ns;
}

static unsigned wait_for_request(struct session *s, uint64_t now_ns)
{
    uint64_t deadline_ns = now_ns + session_http1_idle_ns(s->thread->shared);
    session_tally_set_active(s, false);
    s->idle_since_ns = now_ns;
    return enter_phase(s, SESSION_IDLE, deadline_ns < s->retires_ns ? deadline_ns : s->retires_ns,
                       SESSION_READ);
}

unsigned session_http1_continue(struct session *s, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    if (s->output && (s->output->at < s->output->len || s->output->answer.open)) {
        s->progress_bytes = s->taken_bytes = 0;
        return enter_phase(s, SESSION_SENDING, now_ns + shared->send_timeout_ns, SESSION_WRITE);
    }
    session_http1_drop_output(s);
    if (s->closing)
        return session_http1_end(s, now_ns);
    if (__builtin_expect(s->pending != NULL, 0))
        return enter_phase(s, SESSION_PENDING, session_pending_limit_ns(s->pending), SESSION_WAIT);
    if (s->ended)
        return SESSION_CLOSE;
    if (s->body)
        return wait_for_body(s, now_ns);
    if (s->input)
        return s->phase == SESSION_HEAD
                   ? SESSION_READ
                   : enter_phase(s, SESSION_HEAD, now_ns + shared->header_timeout_ns, SESSION_READ);
    return wait_for_request(s, now_ns);
}

static unsigned close_without_memory(struct session *s)
{
    s->closing = true;
    return SESSION_CLOSE;
}

void session_http1_begin(struct session *s, uint64_t now_ns)
{
    s->phase = SESSION_IDLE;
    s->deadline_ns = now_ns + s->thread->shared->header_timeout_ns;
    s->idle_since_ns = now_ns;
}

unsigned session_http1_refuse(struct session *s, enum http_fault fault, struct span text,
                              uint64_t now_ns)
{
    if (!has_output_room(s))
        return close_without_memory(s);
    session_tally_set_active(s, true);
    session_tally_fault(s->thread, fault);
    session_exchange_fail_with(s, text, now_ns);
    return session_http1_continue(s, now_ns);
}

/* Continues with the bytes that were kept. `fed`: and with those that have been added to them. */
static void use_kept_input(struct session *s, bool fed)
{
    struct session_input *input = s->input;
    size_t used = use_input(s, span_of(input->bytes + input->at, input->len), &input->request,
                            &input->arrival, fed);
    input->at += used;
    input->len -= used;
    s->lingering = s->lingering || (s->closing && input->len > 0);
    if (input->len == 0 || s->closing)
        drop_input(s);
}

unsigned session_http1_linger(struct session *s, size_t bytes)
{
    s->lingered_bytes += (uint32_t)bytes;
    return bytes == 0 || s->lingered_bytes > LINGER_BYTES_MAX ? SESSION_CLOSE : SESSION_READ;
}

unsigned session_http1_feed(struct session *s, struct span in, uint64_t now_ns)
{
    if (s->phase == SESSION_LINGERING)
        return session_http1_linger(s, in.len);
    if (in.len == 0) {
        s->ended = true;
        return SESSION_CLOSE;
    }
    session_tally_set_active(s, true);
    if (s->input) {
        if (!session_input_add(&s->input, in))
            return close_without_memory(s);
        s->input->arrival.rest_ns = now_ns;
        use_kept_input(s, true);
        return __builtin_expect(s->http2 != NULL, 0) ? session_http2_resume(s, now_ns)
                                                     : session_http1_continue(s, now_ns);
    }
    struct http_request request = { 0 };
    struct session_arrival arrival = { now_ns, now_ns };
    size_t used = use_input(s, in, &request, &arrival, true);
    if (__builtin_expect(used < in.len, 0)) {
        if (s->http2)
            return session_http2_feed(s, in, now_ns);
        if (s->closing)
            s->lingering = true;
        else if (!session_input_begin(&s->input, span_skip(in, used), &request, arrival))
            return close_without_memory(s);
    }
    return session_http1_continue(s, now_ns);
}

/* Answers the request that waits, if its answer is no longer pending. */
static void use_pending(struct session *s)
{
    if (!s->pending || !session_pending_is_over(s, s->pending))
        return;
    if (has_output_room(s))
        session_exchange_resume(s);
    else
        s->closing = s->closing || !s->output; /* out of memory */
}

unsigned session_http1_sent(struct session *s, uint64_t now_ns)
{
    if (s->output) {
        session_tally_sent(&s->thread->stats, s->output, now_ns);
        s->output->group_count = 0;
        session_http1_drop_output(s);
    }
    if (__builtin_expect(s->pending != NULL, 0))
        use_pending(s);
    if (__builtin_expect(s->input != NULL, 0) && !s->closing)
        use_kept_input(s, false);
    return session_http1_continue(s, now_ns);
}

unsigned session_http1_await_pages(struct session *s, uint64_t now_ns)
{
    struct session_answer *answer = &s->output->answer;
    session_pages_wait(s, answer, now_ns);
    if (!answer->pages)
        return SESSION_WRITE;
    return enter_phase(s, SESSION_PENDING, session_pages_due_ns(answer), SESSION_WAIT);
}

bool session_http1_waits(const struct session *s)
{
    return s->phase == SESSION_PENDING && !(s->tls && session_tls_has_output(s));
}

/* Continues with a file whose pages are in memory now. */
static unsigned resume_file(struct session *s, uint64_t now_ns)
{
    bool late;
    if (!session_pages_is_over(s, &s->output->answer, now_ns, &late))
        return session_http1_await_pages(s, now_ns);
    if (late) {
        stats_writer_add(&s->thread->stats, STATS_timeouts_send, 1);
        return session_http1_cut(s);
    }
    s->progress_bytes = s->taken_bytes = 0;
    s->phase = SESSION_SENDING;
    s->deadline_ns = now_ns + s->thread->shared->send_timeout_ns;
    return s->tls ? SESSION_WRITE : session_sent(s, 0, now_ns);
}

unsigned session_http1_resume(struct session *s, uint64_t now_ns)
{
    if (s->output && s->output->answer.open && s->output->answer.pages)
        return resume_file(s, now_ns);
    if (session_http1_has_output(s))
        return SESSION_WRITE; /* the answer follows when this is sent */
    use_pending(s);
    if (s->input && !s->closing && !s->pending)
        use_kept_input(s, false);
    return session_http1_continue(s, now_ns);
}

/* ---- time ---- */

unsigned session_http1_expire(struct session *s, uint64_t now_ns)
{
    static const enum stats_counter timeouts[] = {
        [SESSION_IDLE] = STATS_timeouts_idle,
        [SESSION_HEAD] = STATS_timeouts_head,
        [SESSION_BODY] = STATS_timeouts_body,
        [SESSION_SENDING] = STATS_timeouts_send,
    };
    if (s->phase == SESSION_PENDING) {
        if (s->pending)
            session_pending_give_up(s, s->pending);
        return session_http1_resume(s, now_ns);
    }
    if (s->phase == SESSION_IDLE && now_ns >= s->retires_ns)
        stats_writer_add(&s->thread->stats, STATS_connections_retired, 1);
    else if (s->phase != SESSION_LINGERING && s->phase != SESSION_HANDSHAKE)
        stats_writer_add(&s->thread->stats, timeouts[s->phase], 1);
    const bool waiting = s->phase == SESSION_BODY && s->body->waiting;
    if ((s->phase != SESSION_HEAD && !waiting) || !has_output_room(s)) {
        s->closing = true;
        return SESSION_CLOSE;
    }
    if (waiting) {
        session_exchange_fail_waiting(s, HTTP_REQUEST_TIMEOUT);
        return session_http1_continue(s, now_ns);
    }
    uint64_t began_ns = s->input ? s->input->arrival.first_ns : now_ns;
    bool head_only = s->input && s->input->request.method == HTTP_HEAD;
    drop_input(s);
    session_exchange_fail(s, HTTP_REQUEST_TIMEOUT, span_of(NULL, 0), head_only, began_ns);
    return session_http1_continue(s, now_ns);
}
