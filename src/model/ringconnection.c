/* SPDX-License-Identifier: MIT */
#include "model/ringconnection.h"

#include "model/peer.h"
#include "model/ringloop.h"
#include "model/transfer.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>

enum { TURN_BYTES = 2048 * 1024 }; /* of files: one connection's share of a turn of the loop */

static void follow(struct model_ringloop *loop, struct model_ringconnection *c,
                   enum session_want want);

static uint64_t about(const struct model_ringloop *loop, const struct model_ringconnection *c,
                      enum model_ringloop_about what)
{
    return model_ringloop_about(what, (size_t)(c - loop->table));
}

/* ---- closing ---- */

static void count_out(struct model_ringloop *loop)
{
    unsigned live = atomic_fetch_sub_explicit(&loop->live, 1, memory_order_release);
    if (live == loop->connections_max && loop->count > 1) /* others may wait for room here */
        model_ringloop_wake_all(loop);
}

static void finish(struct model_ringloop *loop, struct model_ringconnection *c)
{
    session_close(&c->session);
    stats_add(&loop->worker.stats, STATS_connections_closed, 1);
    model_wheel_remove(&loop->wheel, &c->timer);
    model_ringearly_free(c->early);
    os_file_close(c->fd);
    c->fd = -1;
    c->next = loop->free;
    loop->free = (unsigned)(c - loop->table);
    count_out(loop);
}

/* With output. */
static bool is_busy(const struct model_ringconnection *c)
{
    return c->sending || c->awaiting_room;
}

static bool under_way(const struct model_ringconnection *c)
{
    return c->receiving || is_busy(c);
}

static void cancel(struct model_ringloop *loop, const struct model_ringconnection *c,
                   enum model_ringloop_about what)
{
    model_ring_cancel(&loop->ring, about(loop, c, what), model_ringloop_about(ABOUT_NOTHING, 0));
}

void model_ringconnection_close(struct model_ringloop *loop, struct model_ringconnection *c)
{
    if (!under_way(c)) {
        finish(loop, c);
        return;
    }
    if (c->leaving)
        return;
    c->leaving = true;
    if (c->receiving)
        cancel(loop, c, ABOUT_RECEIVE);
    if (c->sending)
        cancel(loop, c, ABOUT_SEND);
    if (c->awaiting_room)
        cancel(loop, c, ABOUT_ROOM);
}

void model_ringconnection_close_idle(struct model_ringloop *loop, struct model_ringconnection *c)
{
    if (!session_idle(&c->session) || !c->receiving || c->leaving)
        return;
    c->dispensable = true;
    cancel(loop, c, ABOUT_RECEIVE);
}

static void fail(struct model_ringloop *loop, struct model_ringconnection *c, int error)
{
    if (!c->leaving)
        session_failed(&c->session, error);
    model_ringconnection_close(loop, c);
}

/* ---- sending ---- */

/* A file is sent by the loop itself: a ring has no sendfile, and its splice goes through another
 * thread. */
static void await_room(struct model_ringloop *loop, struct model_ringconnection *c)
{
    struct io_uring_sqe *entry = model_ring_entry(&loop->ring, about(loop, c, ABOUT_ROOM));
    io_uring_prep_poll_add(entry, c->fd, POLLOUT);
    c->awaiting_room = true;
}

static enum session_want send_output(struct model_ringloop *loop, struct model_ringconnection *c)
{
    struct session_out out = session_output(&c->session);
    if (out.file_len > 0) {
        enum session_want want = model_transfer_send(&c->session, c->fd, TURN_BYTES, loop->now_ns);
        if (want == WANT_WRITE)
            await_room(loop, c);
        return want;
    }
    session_hold(&c->session);
    model_ring_send(&loop->ring, c->fd, out.piece, model_transfer_flags(&out),
                    about(loop, c, ABOUT_SEND));
    c->sending = true;
    return WANT_WRITE;
}

void model_ringconnection_has_room(struct model_ringloop *loop, struct model_ringconnection *c)
{
    c->awaiting_room = false;
    if (c->leaving)
        model_ringconnection_close(loop, c);
    else
        follow(loop, c, WANT_WRITE);
}

void model_ringconnection_sent(struct model_ringloop *loop, struct model_ringconnection *c,
                               int result)
{
    c->sending = false;
    if (!c->leaving && result >= 0)
        follow(loop, c, session_sent(&c->session, (size_t)result, loop->now_ns));
    else if (!c->leaving && (result == -EAGAIN || result == -EINTR))
        await_room(loop, c);
    else
        fail(loop, c, -result);
}

/* ---- receiving ---- */

static void receive(struct model_ringloop *loop, struct model_ringconnection *c)
{
    if (c->receiving)
        return;
    model_ring_receive(&loop->ring, c->fd, c->kept, about(loop, c, ABOUT_RECEIVE));
    c->receiving = true;
    c->kept = true;
}

/* Feeds what has come early; what the session wants then. */
static enum session_want use_early(struct model_ringloop *loop, struct model_ringconnection *c)
{
    struct span in = model_ringearly_bytes(c->early);
    size_t room = session_room(&c->session);
    if (in.len > room)
        in.len = room;
    enum session_want want = session_feed(&c->session, in, loop->now_ns);
    model_ringearly_drop(&c->early, in.len);
    return want;
}

/* The session is still sending what came before. */
static void take_early(struct model_ringloop *loop, struct model_ringconnection *c, struct span in)
{
    if (in.len == 0) {
        c->ended = true;
        return;
    }
    if (c->receiving && !c->early)
        cancel(loop, c, ABOUT_RECEIVE);
    if (!model_ringearly_keep(&c->early, in))
        model_ringconnection_close(loop, c);
}

static void take(struct model_ringloop *loop, struct model_ringconnection *c, struct span in)
{
    if (c->leaving)
        model_ringconnection_close(loop, c);
    else if (is_busy(c))
        take_early(loop, c, in);
    else
        follow(loop, c, session_feed(&c->session, in, loop->now_ns));
}

/* Whether the connection does, after receiving has ended so. */
static bool goes_on(const struct model_ringconnection *c, int result)
{
    switch (-result) {
    case ECANCELED:
        return !c->dispensable || !session_idle(&c->session);
    case ENOBUFS: /* they come back before anything is submitted */
    case EINTR:
    case EAGAIN:
        return true;
    default:
        return false;
    }
}

void model_ringconnection_received(struct model_ringloop *loop, struct model_ringconnection *c,
                                   const struct io_uring_cqe *done)
{
    if (!(done->flags & IORING_CQE_F_MORE))
        c->receiving = false;
    if (done->res >= 0)
        take(loop, c, model_ring_taken(&loop->ring, done));
    else if (c->leaving || !goes_on(c, done->res))
        fail(loop, c, -done->res);
    else if (!is_busy(c))
        receive(loop, c);
    model_ring_give(&loop->ring, done);
}

/* ---- following what the session wants ---- */

static void keep_time(struct model_ringloop *loop, struct model_ringconnection *c)
{
    uint64_t due_ns = session_deadline_ns(&c->session);
    if (__builtin_expect(!c->timer.next || due_ns < c->timer.due_ns - WHEEL_TICK_NS, 0))
        model_wheel_add(&loop->wheel, &c->timer, due_ns);
}

/* The next step that the session wants; what it wants then. */
static enum session_want step(struct model_ringloop *loop, struct model_ringconnection *c,
                              enum session_want want)
{
    if (want == WANT_WRITE)
        return send_output(loop, c);
    if (want == WANT_HALF_CLOSE)
        (void)shutdown(c->fd, SHUT_WR); /* fails only when the peer is gone: receiving will tell */
    if (c->early)
        return use_early(loop, c);
    if (c->ended)
        return session_feed(&c->session, span_of(NULL, 0), loop->now_ns);
    receive(loop, c);
    return WANT_READ;
}

/* The kernel has been asked for what the session wants. */
static bool is_settled(const struct model_ringconnection *c, enum session_want want)
{
    return is_busy(c) || (want == WANT_READ && c->receiving && !c->early);
}

static void follow(struct model_ringloop *loop, struct model_ringconnection *c,
                   enum session_want want)
{
    while (want != WANT_CLOSE && !is_settled(c, want))
        want = step(loop, c, want);
    if (want == WANT_CLOSE)
        model_ringconnection_close(loop, c);
    else
        keep_time(loop, c);
}

void model_ringconnection_expire(struct model_ringloop *loop, struct model_wheel_node *node)
{
    struct model_ringconnection *c =
        (struct model_ringconnection *)((char *)node -
                                        offsetof(struct model_ringconnection, timer));
    if (loop->now_ns < session_deadline_ns(&c->session))
        keep_time(loop, c);
    else if (!c->leaving)
        follow(loop, c, session_expire(&c->session, loop->now_ns));
}

/* ---- beginning ---- */

static struct session_peer peer_of(int fd)
{
    struct os_socket_address address = { .len = sizeof(address.storage) };
    if (getpeername(fd, (struct sockaddr *)&address.storage, &address.len) < 0)
        return (struct session_peer){ 0 }; /* gone already */
    return model_peer_of(&address);
}

static struct model_ringconnection *take_free(struct model_ringloop *loop)
{
    if (loop->free < loop->table_size) {
        struct model_ringconnection *c = &loop->table[loop->free];
        loop->free = c->next;
        return c;
    }
    return loop->table_used < loop->table_size ? &loop->table[loop->table_used++] : NULL;
}

void model_ringconnection_begin(struct model_ringloop *loop, int fd)
{
    struct model_ringconnection *c = take_free(loop);
    if (!c) {
        os_file_close(fd);
        stats_add(&loop->worker.stats, STATS_connections_closed, 1);
        count_out(loop);
        return;
    }
    c->fd = fd;
    c->early = NULL;
    c->ended = c->kept = c->dispensable = c->leaving = false;
    session_open(&c->session, &loop->worker, peer_of(fd), loop->now_ns);
    follow(loop, c, WANT_READ);
}
