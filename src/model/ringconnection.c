/* SPDX-License-Identifier: MIT */
#include "model/ringconnection.h"

#include "model/ringloop.h"
#include "model/transfer.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>

static void follow_on_ring(struct model_ringloop *r, struct model_ringconnection *c, unsigned want);

_Static_assert(RING_BUFFER_BYTES <= (int)SESSION_READ_LEAST, "a session takes a whole buffer");

static uint64_t about_connection(const struct model_ringloop *r,
                                 const struct model_ringconnection *c,
                                 enum model_ringloop_about what)
{
    return model_ringloop_about(what, (size_t)(c - r->table));
}

/* ---- closing ---- */

static void end_connection(struct model_ringloop *r, struct model_ringconnection *c)
{
    session_close(&c->session);
    stats_writer_add(&r->loop.thread.stats, STATS_connections_closed, 1);
    if (c->dispensable && !r->loop.draining)
        stats_writer_add(&r->loop.thread.stats, STATS_connections_displaced, 1);
    model_wheel_remove(&r->loop.wheel, &c->timer);
    model_ringpending_free(c->pending);
    os_file_close(c->fd);
    c->fd = -1;
    c->next = r->free;
    r->free = (unsigned)(c - r->table);
    model_loop_count_out(&r->loop);
}

static bool is_sending(const struct model_ringconnection *c)
{
    return c->sending || c->awaiting_writable;
}

static bool has_operation(const struct model_ringconnection *c)
{
    return c->receiving || is_sending(c);
}

static void cancel_operation(struct model_ringloop *r, const struct model_ringconnection *c,
                             enum model_ringloop_about what)
{
    model_ring_cancel(&r->ring, about_connection(r, c, what),
                      model_ringloop_about(ABOUT_NOTHING, 0));
}

void model_ringconnection_close(struct model_ringloop *r, struct model_ringconnection *c)
{
    if (!has_operation(c)) {
        end_connection(r, c);
        return;
    }
    if (c->leaving)
        return;
    c->leaving = true;
    if (c->receiving)
        cancel_operation(r, c, ABOUT_RECEIVE);
    if (c->sending)
        cancel_operation(r, c, ABOUT_SEND);
    if (c->awaiting_writable)
        cancel_operation(r, c, ABOUT_WRITABLE);
}

void model_ringconnection_close_idle(struct model_ringloop *r, struct model_ringconnection *c)
{
    if (!session_idle(&c->session) || !c->receiving || c->leaving)
        return;
    c->dispensable = true;
    cancel_operation(r, c, ABOUT_RECEIVE);
}

static void fail_on_ring(struct model_ringloop *r, struct model_ringconnection *c, int error)
{
    if (!c->leaving)
        session_failed(&c->session, error);
    model_ringconnection_close(r, c);
}

/* ---- sending ---- */

static void await_writable(struct model_ringloop *r, struct model_ringconnection *c)
{
    struct io_uring_sqe *entry = model_ring_entry(&r->ring, about_connection(r, c, ABOUT_WRITABLE));
    io_uring_prep_poll_add(entry, c->fd, POLLOUT);
    c->awaiting_writable = true;
}

/* The loop itself sends files: a ring has no sendfile, and its splice uses another thread. */
static unsigned send_output(struct model_ringloop *r, struct model_ringconnection *c, unsigned want)
{
    struct session_out out = session_output(&c->session);
    if (out.file_len > 0) {
        want = model_transfer_send(&c->session, c->fd, LOOP_TURN_BYTES, r->loop.now_ns);
        if (want & SESSION_WRITE)
            await_writable(r, c);
        return want;
    }
    (void)model_transfer_turn(&out, LOOP_TURN_BYTES);
    session_hold(&c->session);
    model_ring_send(&r->ring, c->fd, &out, about_connection(r, c, ABOUT_SEND));
    c->sending = true;
    return want;
}

void model_ringconnection_writable(struct model_ringloop *r, struct model_ringconnection *c)
{
    c->awaiting_writable = false;
    if (c->leaving)
        model_ringconnection_close(r, c);
    else
        follow_on_ring(r, c, SESSION_WRITE);
}

void model_ringconnection_sent(struct model_ringloop *r, struct model_ringconnection *c, int result)
{
    c->sending = false;
    if (!c->leaving && result >= 0)
        follow_on_ring(r, c, session_sent(&c->session, (size_t)result, r->loop.now_ns));
    else if (!c->leaving && (result == -EAGAIN || result == -EINTR))
        await_writable(r, c);
    else
        fail_on_ring(r, c, -result);
}

/* ---- receiving ---- */

static void submit_receive(struct model_ringloop *r, struct model_ringconnection *c)
{
    if (c->receiving)
        return;
    c->way = c->patient && !c->early ? RING_REPEATEDLY : RING_ONCE;
    model_ring_receive(&r->ring, c->fd, c->way, about_connection(r, c, ABOUT_RECEIVE));
    c->receiving = true;
}

/* Input may add output behind what is being sent. */
static unsigned feed_on_ring(struct model_ringloop *r, struct model_ringconnection *c,
                             struct span in)
{
    unsigned want = session_feed(&c->session, in, r->loop.now_ns);
    if (__builtin_expect(is_sending(c), 0))
        session_hold(&c->session);
    return want;
}

/* Feeds the bytes that wait, and returns what the session wants then. */
static unsigned feed_pending(struct model_ringloop *r, struct model_ringconnection *c)
{
    struct span in = model_ringpending_bytes(c->pending);
    size_t room = session_room(&c->session);
    if (in.len > room)
        in.len = room;
    unsigned want = feed_on_ring(r, c, in);
    model_ringpending_drop(&c->pending, in.len);
    return want;
}

/* The session takes no input now: it sends first. */
static void keep_pending(struct model_ringloop *r, struct model_ringconnection *c, struct span in)
{
    if (in.len == 0) {
        c->ended = true;
        return;
    }
    c->early = true;
    if (c->receiving && !c->pending)
        cancel_operation(r, c, ABOUT_RECEIVE);
    if (!model_ringpending_keep(&c->pending, in))
        model_ringconnection_close(r, c);
}

/* A client that fills a small buffer gets larger ones. */
static void adapt_to_input(struct model_ringloop *r, struct model_ringconnection *c, size_t len)
{
    bool was_patient = c->patient;
    c->patient = len < RING_SMALL_BYTES;
    if (__builtin_expect(was_patient && !c->patient, 0) && c->receiving && !c->leaving)
        cancel_operation(r, c, ABOUT_RECEIVE);
}

static void act_on_input(struct model_ringloop *r, struct model_ringconnection *c, struct span in)
{
    adapt_to_input(r, c, in.len);
    c->dispensable = false; /* the cancel comes too late, and may find nothing */
    if (c->leaving)
        model_ringconnection_close(r, c);
    else if (c->pending || session_room(&c->session) == 0)
        keep_pending(r, c, in);
    else
        follow_on_ring(r, c, feed_on_ring(r, c, in));
}

/* Whether to receive again, after receiving has ended with this result. */
static bool may_receive_again(struct model_ringconnection *c, int result)
{
    switch (-result) {
    case ECANCELED:
        c->dispensable = c->dispensable && session_idle(&c->session);
        return !c->dispensable;
    case ENOBUFS: /* all buffers are in use, but free again before the next submission */
    case EINTR:
    case EAGAIN:
        return true;
    default:
        return false;
    }
}

void model_ringconnection_received(struct model_ringloop *r, struct model_ringconnection *c,
                                   const struct io_uring_cqe *done)
{
    const enum model_ring_way way = c->way;
    if (!(done->flags & IORING_CQE_F_MORE))
        c->receiving = false;
    if (done->res >= 0)
        act_on_input(r, c, model_ring_taken(&r->ring, way, done));
    else if (c->leaving || !may_receive_again(c, done->res))
        fail_on_ring(r, c, -done->res);
    else if (session_room(&c->session) > 0)
        submit_receive(r, c);
    model_ring_give(&r->ring, way, done);
}

/* ---- following what the session wants ---- */

static void keep_ring_timer(struct model_ringloop *r, struct model_ringconnection *c)
{
    uint64_t due_ns = session_deadline_ns(&c->session);
    if (__builtin_expect(!c->timer.next || due_ns < c->timer.due_ns - WHEEL_TICK_NS, 0))
        model_wheel_add(&r->loop.wheel, &c->timer, due_ns);
}

/* Takes the next step that the session wants, and returns what it wants then. */
static unsigned take_step(struct model_ringloop *r, struct model_ringconnection *c, unsigned want)
{
    if (want & SESSION_WRITE && !is_sending(c))
        return send_output(r, c, want);
    if (want == SESSION_HALF_CLOSE)
        (void)shutdown(c->fd, SHUT_WR); /* fails only when the peer is gone */
    if (c->pending)
        return feed_pending(r, c);
    if (c->ended)
        return feed_on_ring(r, c, span_of(NULL, 0));
    submit_receive(r, c);
    return want == SESSION_HALF_CLOSE ? SESSION_READ : want;
}

/* Operations for all that the session wants are under way. */
static bool is_submitted(const struct model_ringconnection *c, unsigned want)
{
    if (want & SESSION_WRITE ? !is_sending(c) : want == SESSION_HALF_CLOSE)
        return false;
    return !(want & SESSION_READ) || session_room(&c->session) == 0 ||
           (c->receiving && !c->pending);
}

static void follow_on_ring(struct model_ringloop *r, struct model_ringconnection *c, unsigned want)
{
    while (want != SESSION_CLOSE && !is_submitted(c, want))
        want = take_step(r, c, want);
    if (want == SESSION_CLOSE)
        model_ringconnection_close(r, c);
    else
        keep_ring_timer(r, c);
}

void model_ringconnection_resume(struct model_ringloop *r, struct model_ringconnection *c)
{
    if (c->leaving)
        return;
    unsigned want = session_resume(&c->session, r->loop.now_ns);
    if (__builtin_expect(is_sending(c), 0))
        session_hold(&c->session);
    follow_on_ring(r, c, want);
}

void model_ringconnection_expire(struct model_ringloop *r, struct model_wheel_node *node)
{
    struct model_ringconnection *c =
        (struct model_ringconnection *)((char *)node -
                                        offsetof(struct model_ringconnection, timer));
    if (r->loop.now_ns < session_deadline_ns(&c->session))
        keep_ring_timer(r, c);
    else if (!c->leaving)
        follow_on_ring(r, c, model_transfer_expire(&c->session, c->fd, r->loop.now_ns));
}

void model_ringconnection_drain(struct model_ringloop *r, struct model_ringconnection *c)
{
    const unsigned want = c->leaving ? 0 : session_drain(&c->session, r->loop.now_ns);
    if (want == 0)
        return;
    if (is_sending(c))
        session_hold(&c->session);
    follow_on_ring(r, c, want);
}

/* ---- beginning ---- */

static struct model_ringconnection *take_free(struct model_ringloop *r)
{
    if (r->free < r->table_size) {
        struct model_ringconnection *c = &r->table[r->free];
        r->free = c->next;
        return c;
    }
    return r->table_used < r->table_size ? &r->table[r->table_used++] : NULL;
}

void model_ringconnection_begin(struct model_ringloop *r, int fd, struct session_origin origin)
{
    struct model_ringconnection *c = take_free(r);
    if (!c) {
        model_loop_release_address(&r->loop, &origin.peer);
        os_file_close(fd);
        stats_writer_add(&r->loop.thread.stats, STATS_connections_closed, 1);
        model_loop_count_out(&r->loop);
        return;
    }
    c->fd = fd;
    c->pending = NULL;
    c->ended = c->early = c->patient = c->dispensable = c->leaving = false;
    c->way = RING_ONCE;
    session_open(&c->session, &r->loop.thread, origin, r->loop.now_ns);
    follow_on_ring(r, c, SESSION_READ);
}
