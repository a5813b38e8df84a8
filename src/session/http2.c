/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. Frames are consumed from the front of the input, and each request is
 * answered into the output as it arrives. This stops when the input is consumed or when the output
 * has no space. Then bodies that wait fill the rest of the output. When the output is sent, or
 * sealed, the same begins again with the input that was kept.
 *
 * All that is under way has a time of its own, and the deadline is the earliest of them. The phase
 * is the first of these that is under way. SENDING: output waits for the client, or answers wait
 * for its windows; both need progress within send-timeout. BODY: request bodies arrive. HEAD: an
 * unfinished frame waits, or an answer does in another thread, or the connection ends. IDLE:
 * nothing is under way.
 */
#include "session/http2.h"

#include "base/duration.h"
#include "http2/request.h"
#include "session/body.h"
#include "session/events.h"
#include "session/exchange.h"
#include "session/frames.h"
#include "session/goodbye.h"
#include "session/http1.h"
#include "session/pending.h"
#include "session/stream.h"
#include "session/tally.h"
#include "session/tls.h"

#include <stdlib.h>

static void count(const struct session *s, enum stats_counter counter)
{
    stats_writer_add(&s->thread->stats, counter, 1);
}

/* ---- memory ---- */

static struct session_http2_streams *take_streams(struct session_thread *thread)
{
    struct session_http2_streams *streams = thread->http2_streams;
    thread->http2_streams = NULL;
    return streams ? streams : calloc(1, sizeof(*streams));
}

static void give_streams(struct session *s)
{
    struct session_http2 *h = s->http2;
    if (!h->streams)
        return;
    (void)http2_connection_release(&h->connection);
    if (s->thread->http2_streams)
        free(h->streams);
    else
        s->thread->http2_streams = h->streams;
    h->streams = NULL;
}

/* Memory for the calls below. False: out of memory. */
static bool has_memory(struct session *s)
{
    struct session_http2 *h = s->http2;
    if (!s->thread->http2_scratch)
        s->thread->http2_scratch = malloc(HTTP2_BLOCK_MAX + HTTP2_REQUEST_STORAGE);
    if (!s->output)
        s->output = session_buffer_take(s->thread);
    if (!h->streams)
        h->streams = take_streams(s->thread);
    if (!s->thread->http2_scratch || !s->output || !h->streams)
        return false;
    h->connection.streams = &h->streams->table;
    return true;
}

/* ---- beginning and end ---- */

static unsigned streams_most(const struct session *s)
{
    const uint32_t most = s->thread->shared->http2_streams;
    return most > 0 && most < HTTP2_STREAMS_MAX ? most : HTTP2_STREAMS_MAX;
}

bool session_http2_begin(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = calloc(1, sizeof(*h));
    if (!s->output)
        s->output = session_buffer_take(s->thread);
    if (!h || !s->output) {
        free(h);
        return false;
    }
    struct session_buffer *out = s->output;
    struct buf buf = buf_over(out->bytes + out->len, SESSION_BUFFER_BYTES - out->len);
    http2_table_init(&h->table, http2_request_keeps);
    http2_connection_begin(&h->connection, streams_most(s), &buf);
    out->len += buf.len;
    h->head_due_ns = now_ns + s->thread->shared->header_timeout_ns;
    h->output_max = SESSION_BATCH_BYTES;
    s->http2 = h;
    count(s, STATS_http2_connections_begun);
    return true;
}

struct session_body *session_http2_take_body(struct session_http2 *h,
                                             struct session_http2_place *place)
{
    struct session_body *body = place->body;
    if (body) {
        h->bodies--;
        h->waiting_bytes -= body->waiting->request.head_len;
        place->body = NULL;
    }
    return body;
}

void session_http2_forget(struct session *s, unsigned number)
{
    struct session_http2 *h = s->http2;
    struct session_http2_place *place = &h->streams->place[number];
    if (place->answer) {
        h->answers--;
        count(s, STATS_answers_cut);
        place->answer->answer.cut = true;
        if (s->output)
            session_buffer_keep(s->output, &place->answer->answer);
        session_stream_free(s->thread, place->answer);
    }
    session_body_free(session_http2_take_body(h, place));
    h->lingering -= place->lingers > 0;
    session_pending_drop(s, &place->pending);
    *place = (struct session_http2_place){ 0 };
    count(s, STATS_http2_streams_closed);
}

void session_http2_drop_streams(struct session *s)
{
    struct session_http2 *h = s->http2;
    if (!h->streams)
        return;
    for (unsigned i = 1; i <= HTTP2_STREAMS_MAX; i++)
        if (h->streams->place[i].open)
            session_http2_forget(s, i);
    give_streams(s);
}

void session_http2_drop(struct session *s)
{
    struct session_http2 *h = s->http2;
    if (http2_connection_open(&h->connection) > 0)
        session_http2_drop_streams(s);
    give_streams(s);
    free(h->table.memory);
    free(h);
    s->http2 = NULL;
    count(s, STATS_http2_connections_ended);
}

/* ---- output ---- */

/* Bytes that are sent or sealed leave their space. */
static void rewind_output(struct session_buffer *out)
{
    if (!session_buffer_has_bytes(out))
        out->at = out->len = out->lent = 0;
}

/* Adds what waits, behind the answers. Bodies can fill all of the output, so the goodbye is first.
 * While records wait to be sent, no bodies are added: an answer that is more urgent may come. */
static void add_output(struct session *s, uint64_t now_ns)
{
    struct http2_connection *c = &s->http2->connection;
    if (s->closing)
        return;
    if (session_is_pending(s))
        session_events_resume(s, now_ns);
    if (session_goodbye_has_room(s) && session_goodbye_is_due(s, now_ns))
        session_goodbye_add(s, now_ns);
    if (!s->tls || s->http2->sealing || !session_tls_has_output(s))
        session_frames_add_bodies(s);
    if (!session_goodbye_reports_failure(s) && http2_connection_drained(c))
        s->closing = s->lingering = true;
}

/* The client has not acknowledged that the connection ends. */
static unsigned shorten_goodbye(struct session *s, uint64_t now_ns)
{
    if (has_memory(s) && session_goodbye_has_room(s)) {
        session_goodbye_add(s, now_ns);
        s->http2->head_due_ns = UINT64_MAX;
        add_output(s, now_ns);
    } else { /* once more, when there may be space */
        s->http2->head_due_ns = now_ns + DURATION_SECOND;
    }
    return session_http2_continue(s, now_ns);
}

/* ---- input ---- */

size_t session_http2_room(const struct session *s)
{
    const size_t kept = s->input ? s->input->len : 0;
    const size_t room = kept < SESSION_INPUT_MAX ? SESSION_INPUT_MAX - kept : 0;
    return s->closing || s->ended || room < SESSION_READ_LEAST ? 0 : room;
}

static void drop_kept_input(struct session *s)
{
    free(s->input);
    s->input = NULL;
}

static uint64_t sooner_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Consumes what it can from the front of *in, and leaves an unfinished frame. It has to end within
 * header-timeout. Frames before it move this time only while a request is under way: otherwise a
 * client that requests nothing could keep the connection. Between the first and the final GOAWAY,
 * `head_due_ns` is the end of the connection, too, and no frame makes it later. */
static void use_bytes(struct session *s, struct span *in, struct session_arrival *began,
                      uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    const size_t before = in->len;
    session_events_take(s, in, began);
    const uint64_t due_ns = in->len == 0 ? UINT64_MAX
                                         : now_ns + s->thread->shared->header_timeout_ns;
    if (h->connection.draining && !h->connection.finishing)
        h->head_due_ns = sooner_of(h->head_due_ns, due_ns);
    else if (in->len == 0 || h->head_due_ns == UINT64_MAX || (s->active && in->len < before))
        h->head_due_ns = due_ns;
}

static void use_kept_input(struct session *s, uint64_t now_ns)
{
    struct session_input *input = s->input;
    struct span in = span_of(input->bytes + input->at, input->len);
    use_bytes(s, &in, &input->arrival, now_ns);
    input->at += input->len - in.len;
    input->len = in.len;
    if (in.len == 0 || s->closing)
        drop_kept_input(s);
}

/* False: out of memory. */
static bool use_input(struct session *s, struct span in, uint64_t now_ns)
{
    if (s->input) {
        if (!session_input_add(&s->input, in))
            return false;
        s->input->arrival.rest_ns = now_ns;
        use_kept_input(s, now_ns);
        return true;
    }
    struct session_arrival began = { now_ns, now_ns };
    const struct http_request none = { 0 };
    use_bytes(s, &in, &began, now_ns);
    return in.len == 0 || s->closing || session_input_begin(&s->input, in, &none, began);
}

static unsigned close_without_memory(struct session *s)
{
    s->closing = true;
    return SESSION_CLOSE;
}

unsigned session_http2_feed(struct session *s, struct span in, uint64_t now_ns)
{
    if (s->phase == SESSION_LINGERING)
        return session_http1_linger(s, in.len);
    if (in.len == 0) {
        s->ended = true;
        return session_http2_continue(s, now_ns);
    }
    if (s->closing)
        return session_http2_continue(s, now_ns);
    if (!has_memory(s))
        return close_without_memory(s);
    rewind_output(s->output);
    if (!use_input(s, in, now_ns))
        return close_without_memory(s);
    add_output(s, now_ns);
    return session_http2_continue(s, now_ns);
}

unsigned session_http2_resume(struct session *s, uint64_t now_ns)
{
    if (!has_memory(s))
        return close_without_memory(s);
    rewind_output(s->output);
    if (s->input && !s->closing)
        use_kept_input(s, now_ns);
    add_output(s, now_ns);
    return session_http2_continue(s, now_ns);
}

bool session_http2_fill(struct session *s, size_t most, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    rewind_output(s->output);
    if (!s->closing && has_memory(s)) {
        if (!session_buffer_has_bytes(s->output))
            s->thread->file_used = 0;
        h->output_max = most;
        h->sealing = s->tls != NULL;
        if (s->input && h->full)
            use_kept_input(s, now_ns);
        add_output(s, now_ns);
        h->output_max = SESSION_BATCH_BYTES;
        h->sealing = false;
    }
    return session_buffer_has_bytes(s->output);
}

unsigned session_http2_sent(struct session *s, size_t bytes, uint64_t now_ns)
{
    struct session_buffer *out = s->output;
    session_note_progress(s, bytes, now_ns);
    if (out && !session_buffer_has_bytes(out)) {
        session_tally_sent(&s->thread->stats, out, now_ns);
        if (__builtin_expect(out->lines != NULL, 0))
            session_line_write_sent(s->thread, out);
        out->group_count = 0;
        out->delayed_ns = 0;
        (void)session_http2_fill(s, SESSION_BATCH_BYTES, now_ns);
    }
    return session_http2_continue(s, now_ns);
}

/* ---- the next phase ---- */

/* While answers are under way, the client must take some bytes within send-timeout. */
static void follow_answers(struct session *s, bool pending, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    const bool waiting = h->answers > h->fetching;
    const bool answering = pending || waiting;
    const bool stalled = !pending && waiting;
    if (answering && !h->answering) {
        h->send_due_ns = now_ns + s->thread->shared->send_timeout_ns;
        s->progress_bytes = s->taken_bytes = 0;
    }
    if (stalled && !h->stalled)
        count(s, STATS_http2_stalls);
    h->answering = answering;
    h->stalled = stalled;
}

/* Where request bodies must keep a rate, each byte moves the deadline, at most to
 * SESSION_BODY_RATE_NS from now. Returns the deadline. */
static uint64_t follow_bodies(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    const uint32_t rate = s->thread->shared->body_rate_bytes;
    if (rate > 0 && h->body_bytes > 0)
        h->body_due_ns = sooner_of(h->body_due_ns + h->body_bytes * DURATION_SECOND / rate,
                                   now_ns + SESSION_BODY_RATE_NS);
    h->body_bytes = 0;
    return sooner_of(h->body_due_ns, h->body_limit_ns);
}

static unsigned wait_for_request(struct session *s, uint64_t now_ns)
{
    s->phase = SESSION_IDLE;
    s->deadline_ns = sooner_of(now_ns + session_http1_idle_ns(s->thread->shared), s->retires_ns);
    return SESSION_READ;
}

unsigned session_http2_continue(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    const bool pending = (s->output && session_buffer_has_bytes(s->output)) ||
                         (s->tls && session_tls_has_output(s));
    const bool open = http2_connection_open(&h->connection) > 0;
    if (!pending)
        session_http1_drop_output(s);
    if (!http2_connection_needs_table(&h->connection))
        give_streams(s);
    const bool no_more = s->ended && !session_is_pending(s);
    if (!pending && (s->closing || (no_more && h->answers == 0)))
        return session_http1_end(s, now_ns);
    if (!pending && no_more)
        return SESSION_CLOSE; /* the windows are closed, and the client cannot open them */
    follow_answers(s, pending, now_ns);
    if (!open && !pending && s->active) { /* frames without a request do not end the idle time */
        s->idle_since_ns = now_ns;
        session_tally_set_active(s, false);
    }
    if (!open && !pending && h->head_due_ns == UINT64_MAX)
        return wait_for_request(s, now_ns);
    s->phase = h->answering ? SESSION_SENDING : h->bodies > 0 ? SESSION_BODY : SESSION_HEAD;
    s->deadline_ns = h->answering ? h->send_due_ns : UINT64_MAX;
    if (h->answers > 0 && !s->closing)
        s->deadline_ns = sooner_of(s->deadline_ns, h->scan_ns);
    if (h->bodies > 0 && !s->closing)
        s->deadline_ns = sooner_of(s->deadline_ns, follow_bodies(s, now_ns));
    if (h->lingering > 0 && !s->closing)
        s->deadline_ns = sooner_of(s->deadline_ns, h->linger_ns);
    if (session_is_pending(s) && !s->closing)
        s->deadline_ns = sooner_of(s->deadline_ns, h->pending_ns);
    if (!h->full && !s->closing)
        s->deadline_ns = sooner_of(s->deadline_ns, h->head_due_ns);
    return pending ? session_http2_want(s) : s->ended ? SESSION_WAIT : SESSION_READ;
}

/* ---- time ---- */

/* The connection ends, with GOAWAY where the output has space for it. */
static unsigned end_gracefully(struct session *s, uint64_t now_ns)
{
    if (!has_memory(s) || !session_goodbye_has_room(s))
        return close_without_memory(s);
    if (session_goodbye_reports_failure(s))
        return session_http2_continue(s, now_ns);
    for (int i = 0; i < 2 && !s->http2->shortened; i++)
        session_goodbye_add(s, now_ns);
    session_http2_drop_streams(s);
    s->closing = s->lingering = true;
    return session_http2_continue(s, now_ns);
}

static unsigned expire_answers(struct session *s, uint64_t now_ns)
{
    count(s, STATS_timeouts_send);
    if (session_has_output(s) || !has_memory(s))
        return close_without_memory(s);
    session_goodbye_fail(s, HTTP2_FAULT_STALLED);
    return session_http2_continue(s, now_ns);
}

unsigned session_http2_drain(struct session *s, uint64_t now_ns)
{
    if (s->http2->connection.draining || !has_memory(s))
        return 0;
    rewind_output(s->output);
    add_output(s, now_ns);
    return session_http2_continue(s, now_ns);
}

unsigned session_http2_expire(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    if (s->phase == SESSION_LINGERING || s->closing) {
        stats_writer_add(&s->thread->stats, STATS_timeouts_send, s->phase == SESSION_SENDING);
        return close_without_memory(s);
    }
    if (s->phase == SESSION_IDLE) {
        count(s, now_ns >= s->retires_ns ? STATS_connections_retired : STATS_timeouts_idle);
        return end_gracefully(s, now_ns);
    }
    if (h->answering && now_ns >= h->send_due_ns)
        return expire_answers(s, now_ns);
    if (h->answers > 0 && now_ns >= h->scan_ns && has_memory(s))
        session_frames_expire(s, now_ns);
    const uint64_t body_ns = sooner_of(h->body_due_ns, h->body_limit_ns);
    if (h->bodies > 0 && now_ns >= body_ns && has_memory(s))
        session_events_expire(s, now_ns);
    if (h->lingering > 0 && now_ns >= h->linger_ns && has_memory(s))
        session_frames_expire_lingering(s, now_ns);
    if (h->full || now_ns < h->head_due_ns)
        return session_is_pending(s) ? session_http2_resume(s, now_ns)
                                     : session_http2_continue(s, now_ns);
    h->head_due_ns = UINT64_MAX;
    if (!h->connection.draining)
        count(s, STATS_timeouts_head);
    else if (!h->shortened)
        return shorten_goodbye(s, now_ns);
    return end_gracefully(s, now_ns);
}
