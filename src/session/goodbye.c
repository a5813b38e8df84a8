/* SPDX-License-Identifier: MIT */
#include "session/goodbye.h"

#include "session/http2.h"
#include "session/tally.h"

/* The most that a client may take to acknowledge that the connection ends. */
#define GOODBYE_NS UINT64_C(1000000000)

static void count(const struct session *s, enum stats_counter counter)
{
    stats_writer_add(&s->thread->stats, counter, 1);
}

static struct buf output_end(struct session_buffer *out)
{
    return buf_over(out->bytes + out->len, SESSION_BUFFER_BYTES - out->len);
}

/* ---- the graceful end ---- */

static bool is_draining(const struct session *s)
{
    return atomic_load_explicit(&s->thread->shared->draining, memory_order_relaxed);
}

/* In a drain, a connection without streams waits no longer than one of HTTP/1.1 does. */
static uint64_t goodbye_ns(const struct session *s)
{
    const uint64_t idle_ns = s->thread->shared->drain_idle_ns;
    const bool idle = is_draining(s) && http2_connection_open(&s->http2->connection) == 0;
    return idle && idle_ns < GOODBYE_NS ? idle_ns : GOODBYE_NS;
}

void session_goodbye_add(struct session *s, uint64_t now_ns)
{
    struct session_http2 *h = s->http2;
    struct session_buffer *out = s->output;
    struct buf buf = output_end(out);
    if (!h->connection.draining)
        count(s, STATS_http2_goaways_sent);
    h->shortened = h->connection.draining;
    h->head_due_ns = now_ns + goodbye_ns(s);
    http2_connection_drain(&h->connection, &buf);
    out->len += buf.len;
}

bool session_goodbye_is_due(const struct session *s, uint64_t now_ns)
{
    const struct session_shared *shared = s->thread->shared;
    if (s->http2->connection.draining)
        return false;
    if (s->refusing || is_draining(s))
        return true;
    if (__builtin_expect(now_ns < s->retires_ns && (shared->connection_requests == 0 ||
                                                    s->answers < shared->connection_requests),
                         1))
        return false;
    count(s, STATS_connections_retired);
    return true;
}

/* ---- failures ---- */

void session_goodbye_after_failure(struct session *s)
{
    enum http2_fault fault = (enum http2_fault)s->http2->connection.fault;
    count(s, STATS_http2_goaways_sent);
    session_tally_http2_failed(&s->thread->stats, fault);
    s->closing = s->lingering = true;
    session_http2_drop_streams(s);
}

void session_goodbye_fail(struct session *s, unsigned fault)
{
    struct buf buf = output_end(s->output);
    http2_connection_fail(&s->http2->connection, &buf, (enum http2_fault)fault);
    s->output->len += buf.len;
    session_goodbye_after_failure(s);
}

bool session_goodbye_reports_failure(struct session *s)
{
    const struct http2_connection *c = &s->http2->connection;
    if (!http2_connection_failing(c) || !session_goodbye_has_room(s))
        return false;
    session_goodbye_fail(s, c->fault);
    return true;
}
