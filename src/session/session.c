/* SPDX-License-Identifier: MIT
 *
 * The life of a session, and the plain transport: what arrives is what HTTP/1.1 takes, and pieces
 * of the output are lent as they are. session/tls.c is the other transport.
 */
#include "session/session.h"

#include "session/answer.h"
#include "session/buffer.h"
#include "session/exchange.h"
#include "session/forwarded.h"
#include "session/http1.h"
#include "session/http2.h"
#include "session/pages.h"
#include "session/proxy.h"
#include "session/tally.h"
#include "session/thread.h"
#include "session/tls.h"

#include <errno.h>

/* ---- begin and end ---- */

void session_open(struct session *s, struct session_thread *thread, struct session_origin origin,
                  uint64_t now_ns)
{
    const uint64_t time_ns = thread->shared->connection_time_ns;
    *s = (struct session){
        .thread = thread,
        .peer = origin.peer,
        .tls_wanted = origin.tls,
        .proxied = origin.proxied,
        .forwards = session_forwarded_trusts(thread->shared, &origin.peer),
        .phase = SESSION_IDLE,
        .deadline_ns = now_ns + thread->shared->header_timeout_ns,
        .idle_since_ns = now_ns,
        .retires_ns = time_ns > 0 ? now_ns + time_ns : UINT64_MAX,
    };
}

void session_close(struct session *s)
{
    if (__builtin_expect(s->tls != NULL, 0))
        session_tls_close(s);
    if (__builtin_expect(s->http2 != NULL, 0))
        session_http2_drop(s);
    session_http1_drop(s);
    session_tally_set_active(s, false);
    if (s->peer.limited)
        session_proxy_release(s);
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
    return s->phase == SESSION_IDLE;
}

uint64_t session_idle_since_ns(const struct session *s)
{
    return s->phase == SESSION_IDLE ? s->idle_since_ns : UINT64_MAX;
}

size_t session_room(const struct session *s)
{
    if (__builtin_expect(s->http2 != NULL, 0) && s->phase != SESSION_LINGERING) {
        size_t room = s->tls && session_tls_keeps_input(s) ? 0 : session_http2_room(s);
        return room < SESSION_READ_MAX ? room : SESSION_READ_MAX;
    }
    if (session_has_output(s) || s->pending)
        return 0;
    size_t room = session_http1_room(s);
    return room < SESSION_READ_MAX ? room : SESSION_READ_MAX;
}

/* ---- input ---- */

unsigned session_feed(struct session *s, struct span in, uint64_t now_ns)
{
    CHECK(in.len <= session_room(s));
    if (s->phase != SESSION_LINGERING)
        stats_writer_add(&s->thread->stats, STATS_received_bytes, in.len);
    if (__builtin_expect(s->tls_wanted || s->proxied, 0))
        return s->proxied ? session_proxy_feed(s, in, now_ns) : session_tls_feed(s, in, now_ns);
    if (__builtin_expect(s->http2 != NULL, 0))
        return session_http2_feed(s, in, now_ns);
    return session_http1_feed(s, in, now_ns);
}

unsigned session_resume(struct session *s, uint64_t now_ns)
{
    if (s->tls)
        return session_tls_resume(s, now_ns);
    return s->http2 ? session_http2_resume(s, now_ns) : session_http1_resume(s, now_ns);
}

/* ---- output ---- */

/* Whether nothing follows the staged bytes and the memory. */
static bool ends_in_memory(const struct session_buffer *out)
{
    return !out->answer.open ||
           (out->answer.file_at == out->answer.file_end && out->answer.parts.left == 0);
}

static bool is_last_output(const struct session *s)
{
    return s->closing && !s->lingering && ends_in_memory(s->output);
}

static struct session_out lent_output(const struct session *s)
{
    struct session_out next = { .file_fd = -1, .last = is_last_output(s) };
    next.count = session_buffer_pieces(s->output, next.piece, SESSION_PIECES, SIZE_MAX);
    return next;
}

/* Whether the next bytes are those of a file. */
static bool ends_in_file(const struct session_buffer *out)
{
    return !session_buffer_has_bytes(out) && out->answer.open && out->answer.memory.len == 0;
}

/* A function of its own that passes no address of the result, so that the compiler makes the result
 * in its place. A copy would cost more than all the rest. */
static __attribute__((noinline)) struct session_out plain_output(const struct session *s)
{
    const struct session_buffer *out = s->output;
    struct session_out next; /* without zeros for pieces that are not used */
    next.count = 0;
    next.file_fd = -1;
    next.file_offset = next.file_len = 0;
    next.last = is_last_output(s);
    if (out->at < out->len)
        next.piece[next.count++] = span_of(out->bytes + out->at, out->len - out->at);
    if (!out->answer.open)
        return next;
    if (out->answer.memory.len > 0)
        next.piece[next.count++] = out->answer.memory;
    uint64_t left = out->answer.file_end - out->answer.file_at;
    if (left > SESSION_TAIL_BYTES) {
        const uint64_t most = left - SESSION_TAIL_BYTES;
        const uint64_t ready = session_pages_ready(s->thread, &s->output->answer);
        next.file_fd = ready > 0 ? site_file_fd(out->answer.file) : -1;
        next.file_offset = out->answer.file_at;
        next.file_len = ready < most ? ready : most;
    }
    return next;
}

struct session_out session_output(const struct session *s)
{
    if (__builtin_expect(s->tls != NULL, 0))
        return session_tls_output(s);
    CHECK(s->output);
    return __builtin_expect(s->output->loan_count > 0, 0) ? lent_output(s) : plain_output(s);
}

unsigned session_cut(struct session *s)
{
    return session_http1_cut(s);
}

bool session_delayed(const struct session *s)
{
    return s->output && s->output->delayed_ns != 0;
}

void session_hold(struct session *s)
{
    struct session_buffer *out = s->output;
    if (!out)
        return;
    if (__builtin_expect(out->loan_count > 0, 0))
        session_buffer_hold(out);
    if (!out->answer.open || out->answer.held || !out->answer.entry)
        return;
    site_cache_hold(&out->answer.entry->cache);
    out->answer.held = true;
}

void session_note_progress(struct session *s, size_t bytes, uint64_t now_ns)
{
    const uint32_t step = s->thread->shared->send_step_bytes;
    s->progress_bytes += (uint32_t)(bytes < step ? bytes : step);
    s->taken_bytes = 0;
    if (s->progress_bytes < step)
        return;
    s->progress_bytes = 0;
    s->deadline_ns = now_ns + s->thread->shared->send_timeout_ns;
    if (s->http2)
        s->http2->send_due_ns = s->deadline_ns;
}

void session_note_taken(struct session *s, uint64_t bytes, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    if (s->phase != SESSION_SENDING || bytes == 0 || bytes > UINT32_MAX ||
        bytes < (uint64_t)s->taken_bytes + shared->send_step_bytes)
        return;
    uint64_t *due_ns = s->http2 ? &s->http2->send_due_ns : &s->deadline_ns;
    if (now_ns < *due_ns)
        return;
    *due_ns = now_ns + shared->send_timeout_ns;
    if (s->closing) /* then HTTP/2 has no other deadline */
        s->deadline_ns = *due_ns;
    s->progress_bytes = 0;
    s->taken_bytes = (uint32_t)bytes;
}

/* More is left to send, and it is in memory. */
static unsigned send_on(struct session *s, size_t bytes, uint64_t now_ns)
{
    session_note_progress(s, bytes, now_ns);
    if (s->output->delayed_ns == 0)
        s->output->delayed_ns = now_ns;
    session_hold(s);
    return s->http2 ? session_http2_continue(s, now_ns) : SESSION_WRITE;
}

/* The memory before a file is sent. Continues with the file, when its pages are in memory. */
static unsigned send_file(struct session *s, size_t bytes, uint64_t now_ns)
{
    struct session_answer *answer = &s->output->answer;
    if (session_pages_ready(s->thread, answer) == 0) {
        session_hold(s);
        return session_http1_await_pages(s, now_ns);
    }
    if (answer->file_end - answer->file_at > SESSION_TAIL_BYTES)
        return send_on(s, bytes, now_ns);
    return session_buffer_stage_tail(s->output) ? send_on(s, bytes, now_ns) : session_cut(s);
}

unsigned session_sent(struct session *s, size_t bytes, uint64_t now_ns)
{
    stats_writer_add(&s->thread->stats, STATS_sent_bytes, bytes);
    if (__builtin_expect(s->tls != NULL, 0))
        return session_tls_sent(s, bytes, now_ns);
    struct session_buffer *out = s->output;
    CHECK(out);
    if (__builtin_expect(session_buffer_take_sent(out, bytes), 0))
        return ends_in_file(out) ? send_file(s, bytes, now_ns) : send_on(s, bytes, now_ns);
    if (out->answer.open) {
        if (out->answer.file_at < out->answer.file_end)
            return send_file(s, bytes, now_ns);
        if (session_answer_stage_part(out))
            return send_on(s, 0, now_ns);
    }
    return __builtin_expect(s->http2 != NULL, 0) ? session_http2_sent(s, bytes, now_ns)
                                                 : session_http1_sent(s, now_ns);
}

/* ---- time ---- */

unsigned session_drain(struct session *s, uint64_t now_ns)
{
    if (!s->http2 || s->closing)
        return 0;
    const unsigned want = s->tls ? session_tls_drain(s, now_ns) : session_http2_drain(s, now_ns);
    session_hold(s);
    return want;
}

unsigned session_expire(struct session *s, uint64_t now_ns)
{
    if (now_ns < s->deadline_ns)
        return session_http1_waits(s)  ? SESSION_WAIT
               : session_has_output(s) ? SESSION_WRITE
                                       : SESSION_READ;
    if (__builtin_expect(s->tls != NULL, 0))
        return session_tls_expire(s, now_ns);
    if (!s->http2)
        return session_http1_expire(s, now_ns);
    const unsigned want = session_http2_expire(s, now_ns);
    session_hold(s); /* an answer may have been added while a model sends */
    return want;
}
