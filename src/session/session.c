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
 *                          \-- chunked --> BODY --> (answer)  \--> LINGERING --> closed
 */
#include "session/session.h"

#include "base/duration.h"
#include "session/body.h"
#include "session/buffer.h"
#include "session/exchange.h"
#include "session/input.h"
#include "session/limits.h"
#include "session/plan.h"
#include "session/tally.h"
#include "session/thread.h"
#include "session/trace.h"

#include <errno.h>
#include <stdlib.h>

/* What the deadline is for. */
enum phase { IDLE, HEAD, BODY, SENDING, LINGERING };

enum { LINGER_BYTES_MAX = 2 * 1024 * 1024 };
#define LINGER_NS UINT64_C(2000000000)

/* The time over which the rate of a request body is averaged. */
#define BODY_RATE_NS UINT64_C(5000000000)

/* ---- begin and end ---- */

void session_open(struct session *s, struct session_thread *thread, struct session_peer peer,
                  uint64_t now_ns)
{
    const uint64_t time_ns = thread->shared->connection_time_ns;
    *s = (struct session){
        .thread = thread,
        .peer = peer,
        .phase = IDLE,
        .deadline_ns = now_ns + thread->shared->header_timeout_ns,
        .idle_since_ns = now_ns,
        .retires_ns = time_ns > 0 ? now_ns + time_ns : UINT64_MAX,
    };
}

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

/* Releases the output. Unsent bytes are lost. */
static void drop_output(struct session *s)
{
    if (!s->output)
        return;
    session_tally_cut(&s->thread->stats, s->output);
    session_answer_end(s->thread, s->output);
    session_buffer_give(s->thread, s->output);
    s->output = NULL;
}

void session_close(struct session *s)
{
    drop_input(s);
    drop_body(s);
    drop_output(s);
    session_tally_set_active(s, false);
    if (s->peer.limited)
        session_limits_release(s->thread->shared->limits, &s->peer);
    s->peer.limited = false;
}

void session_failed(const struct session *s, int error)
{
    if (error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == EHOSTUNREACH ||
        error == ENETUNREACH)
        stats_writer_add(&s->thread->stats, STATS_connections_reset, 1);
}

void session_refuse(struct session *s)
{
    stats_writer_add(&s->thread->stats, STATS_connections_refused, 1);
    s->refusing = true;
}

bool session_idle(const struct session *s)
{
    return s->phase == IDLE;
}

uint64_t session_idle_since_ns(const struct session *s)
{
    return s->phase == IDLE ? s->idle_since_ns : UINT64_MAX;
}

size_t session_room(const struct session *s)
{
    if (s->output)
        return 0;
    if (!s->input)
        return SESSION_READ_MAX;
    size_t room = SESSION_INPUT_MAX - s->input->len;
    return room < SESSION_READ_MAX ? room : SESSION_READ_MAX;
}

/* ---- input ---- */

static bool has_output_room(struct session *s)
{
    if (__builtin_expect(!s->output, 1))
        s->output = session_buffer_take(s->thread);
    struct session_buffer *out = s->output;
    return out && !out->open && out->len + SESSION_ANSWER_ROOM <= SESSION_BUFFER_BYTES &&
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
    s->phase = HEAD; /* this body gets a limit of its own, also directly after another body */
    s->body = session_body_new(body, request, head, began_ns);
    if (!s->body) {
        session_exchange_refuse(s, began_ns);
    }
}

/* Consumes what it can from the front of `bytes`, and returns how many. `request` is the
 * parser's state, and keeps it when a head is unfinished. `arrival` follows the requests. */
static size_t use_input(struct session *s, struct span bytes, struct http_request *request,
                        struct session_arrival *arrival)
{
    size_t used = 0;
    while (used < bytes.len && !s->closing) {
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
            take_request(s, request, rest.at, arrival->first_ns);
            arrival->first_ns = arrival->rest_ns;
            used += request->head_len;
            *request = (struct http_request){ 0 };
            break;
        case HTTP_PARSE_MORE:
            return used;
        case HTTP_PARSE_FAILED:
            session_tally_fault(s->thread, (enum http_fault)request->fault);
            session_exchange_fail(s, status, span_of(rest.at + request->line.at, request->line.len),
                                  request->method == HTTP_HEAD, arrival->first_ns);
            break;
        }
    }
    return used;
}

/* ---- the next phase ---- */

static enum session_want enter_phase(struct session *s, enum phase phase, uint64_t deadline_ns,
                                     enum session_want want)
{
    s->phase = (uint8_t)phase;
    s->deadline_ns = deadline_ns;
    return want;
}

static enum session_want end_session(struct session *s, uint64_t now_ns)
{
    drop_input(s);
    drop_body(s);
    session_tally_set_active(s, false);
    if (!s->lingering || s->ended)
        return WANT_CLOSE;
    return enter_phase(s, LINGERING, now_ns + LINGER_NS, WANT_HALF_CLOSE);
}

/* A body has a limit for the whole of it. Where it must keep a rate, each byte moves the deadline,
 * at most to BODY_RATE_NS from now. */
static enum session_want wait_for_body(struct session *s, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    struct session_body *body = s->body;
    uint64_t deadline_ns = now_ns + BODY_RATE_NS;
    if (s->phase != BODY) {
        body->limit_ns = now_ns + shared->body_timeout_ns;
    } else if (shared->body_rate_bytes > 0) {
        uint64_t moved_ns = s->deadline_ns +
                            body->received_bytes * DURATION_SECOND / shared->body_rate_bytes;
        deadline_ns = moved_ns < deadline_ns ? moved_ns : deadline_ns;
    }
    if (shared->body_rate_bytes == 0 || body->limit_ns < deadline_ns)
        deadline_ns = body->limit_ns;
    body->received_bytes = 0;
    return enter_phase(s, BODY, deadline_ns, WANT_READ);
}

/* How long the connection may stay idle. */
static uint64_t idle_ns(const struct session_shared *shared)
{
    bool draining = atomic_load_explicit(&shared->draining, memory_order_relaxed);
    return draining && shared->drain_idle_ns < shared->idle_timeout_ns ? shared->drain_idle_ns
                                                                       : shared->idle_timeout_ns;
}

static enum session_want wait_for_request(struct session *s, uint64_t now_ns)
{
    uint64_t deadline_ns = now_ns + idle_ns(s->thread->shared);
    session_tally_set_active(s, false);
    s->idle_since_ns = now_ns;
    return enter_phase(s, IDLE, deadline_ns < s->retires_ns ? deadline_ns : s->retires_ns,
                       WANT_READ);
}

static enum session_want enter_next_phase(struct session *s, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    if (s->output && (s->output->at < s->output->len || s->output->open)) {
        s->progress_bytes = 0;
        return enter_phase(s, SENDING, now_ns + shared->send_timeout_ns, WANT_WRITE);
    }
    drop_output(s);
    if (s->closing)
        return end_session(s, now_ns);
    if (s->ended)
        return WANT_CLOSE;
    if (s->body)
        return wait_for_body(s, now_ns);
    if (s->input)
        return s->phase == HEAD
                   ? WANT_READ
                   : enter_phase(s, HEAD, now_ns + shared->header_timeout_ns, WANT_READ);
    return wait_for_request(s, now_ns);
}

/* Continues with the bytes that were kept. */
static void use_kept_input(struct session *s)
{
    struct session_input *input = s->input;
    size_t used = use_input(s, span_of(input->bytes + input->at, input->len), &input->request,
                            &input->arrival);
    input->at += used;
    input->len -= used;
    s->lingering = s->lingering || (s->closing && input->len > 0);
    if (input->len == 0 || s->closing)
        drop_input(s);
}

static enum session_want drop_lingering_input(struct session *s, size_t bytes)
{
    s->lingered_bytes += (uint32_t)bytes;
    return bytes == 0 || s->lingered_bytes > LINGER_BYTES_MAX ? WANT_CLOSE : WANT_READ;
}

static enum session_want close_without_memory(struct session *s)
{
    s->closing = true;
    return WANT_CLOSE;
}

enum session_want session_feed(struct session *s, struct span in, uint64_t now_ns)
{
    CHECK(in.len <= session_room(s));
    if (s->phase == LINGERING)
        return drop_lingering_input(s, in.len);
    if (in.len == 0) {
        s->ended = true;
        return WANT_CLOSE;
    }
    stats_writer_add(&s->thread->stats, STATS_received_bytes, in.len);
    session_tally_set_active(s, true);
    if (s->input) {
        if (!session_input_add(&s->input, in))
            return close_without_memory(s);
        s->input->arrival.rest_ns = now_ns;
        use_kept_input(s);
        return enter_next_phase(s, now_ns);
    }
    struct http_request request = { 0 };
    struct session_arrival arrival = { now_ns, now_ns };
    size_t used = use_input(s, in, &request, &arrival);
    if (__builtin_expect(used < in.len, 0)) {
        if (s->closing)
            s->lingering = true;
        else if (!session_input_begin(&s->input, span_skip(in, used), &request, arrival))
            return close_without_memory(s);
    }
    return enter_next_phase(s, now_ns);
}

/* ---- output ---- */

/* Whether nothing follows the staged bytes and the memory. */
static bool ends_in_memory(const struct session_buffer *out)
{
    return !out->open || (out->file_at == out->file_end && out->parts.left == 0);
}

struct session_out session_output(const struct session *s)
{
    const struct session_buffer *out = s->output;
    struct session_out next = { .file_fd = -1 };
    CHECK(out);
    next.last = s->closing && !s->lingering && ends_in_memory(out);
    unsigned pieces = 0;
    if (out->at < out->len)
        next.piece[pieces++] = span_of(out->bytes + out->at, out->len - out->at);
    if (!out->open)
        return next;
    if (out->memory.len > 0)
        next.piece[pieces] = out->memory;
    uint64_t left = out->file_end - out->file_at;
    if (left > SESSION_TAIL_BYTES) {
        next.file_fd = out->file->fd;
        next.file_offset = out->file_at;
        next.file_len = left - SESSION_TAIL_BYTES;
    }
    return next;
}

enum session_want session_cut(struct session *s)
{
    drop_output(s);
    s->closing = true;
    return WANT_CLOSE;
}

bool session_delayed(const struct session *s)
{
    return s->output && s->output->delayed_ns != 0;
}

void session_hold(struct session *s)
{
    struct session_buffer *out = s->output;
    if (!out || !out->open || out->held || !out->entry)
        return;
    site_cache_hold(&out->entry->cache);
    out->held = true;
}

static void note_progress(struct session *s, size_t bytes, uint64_t now_ns)
{
    const uint32_t step = s->thread->shared->send_step_bytes;
    s->progress_bytes += (uint32_t)(bytes < step ? bytes : step);
    if (s->progress_bytes < step)
        return;
    s->progress_bytes = 0;
    s->deadline_ns = now_ns + s->thread->shared->send_timeout_ns;
}

/* More is left to send. */
static enum session_want send_on(struct session *s, size_t bytes, uint64_t now_ns)
{
    note_progress(s, bytes, now_ns);
    if (s->output->delayed_ns == 0)
        s->output->delayed_ns = now_ns;
    session_hold(s);
    return WANT_WRITE;
}

enum session_want session_sent(struct session *s, size_t bytes, uint64_t now_ns)
{
    struct session_buffer *out = s->output;
    CHECK(out);
    stats_writer_add(&s->thread->stats, STATS_sent_bytes, bytes);
    if (__builtin_expect(session_buffer_take_sent(out, bytes), 0))
        return send_on(s, bytes, now_ns);
    if (out->open) {
        if (out->file_at < out->file_end)
            return session_buffer_stage_tail(out) ? send_on(s, bytes, now_ns) : session_cut(s);
        if (session_answer_next_part(out))
            return send_on(s, 0, now_ns);
    }
    session_tally_sent(&s->thread->stats, out, now_ns);
    out->group_count = 0;
    drop_output(s);
    if (__builtin_expect(s->input != NULL, 0) && !s->closing)
        use_kept_input(s);
    return enter_next_phase(s, now_ns);
}

/* ---- time ---- */

enum session_want session_expire(struct session *s, uint64_t now_ns)
{
    if (now_ns < s->deadline_ns)
        return s->output ? WANT_WRITE : WANT_READ;
    static const enum stats_counter timeouts[] = {
        [IDLE] = STATS_timeouts_idle,
        [HEAD] = STATS_timeouts_head,
        [BODY] = STATS_timeouts_body,
        [SENDING] = STATS_timeouts_send,
    };
    if (s->phase == IDLE && now_ns >= s->retires_ns)
        stats_writer_add(&s->thread->stats, STATS_connections_retired, 1);
    else if (s->phase != LINGERING)
        stats_writer_add(&s->thread->stats, timeouts[s->phase], 1);
    const bool waiting = s->phase == BODY && s->body->waiting;
    if ((s->phase != HEAD && !waiting) || !has_output_room(s)) {
        s->closing = true;
        return WANT_CLOSE;
    }
    if (waiting) {
        session_exchange_fail_waiting(s, HTTP_REQUEST_TIMEOUT);
        return enter_next_phase(s, now_ns);
    }
    uint64_t began_ns = s->input ? s->input->arrival.first_ns : now_ns;
    bool head_only = s->input && s->input->request.method == HTTP_HEAD;
    drop_input(s);
    session_exchange_fail(s, HTTP_REQUEST_TIMEOUT, span_of(NULL, 0), head_only, began_ns);
    return enter_next_phase(s, now_ns);
}
