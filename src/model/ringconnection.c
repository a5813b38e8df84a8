/* SPDX-License-Identifier: MIT */
#include "model/ringconnection.h"

#include "model/ringloop.h"
#include "model/transfer.h"
#include "os/file.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    TURN_BYTES = 2048 * 1024, /* of files: one connection's share of a turn of the loop */
    EARLY_MAX = 512 * 1024,
};

static void follow(struct model_ringloop *loop, struct model_ringconnection *c,
                   enum session_want want);

static uint64_t about(const struct model_ringloop *loop, const struct model_ringconnection *c,
                      enum model_ringloop_about what)
{
    return model_ringloop_about(what, (size_t)(c - loop->table));
}

/* ---- closing ---- */

static void finish(struct model_ringloop *loop, struct model_ringconnection *c)
{
    session_close(&c->session);
    model_wheel_remove(&loop->wheel, &c->timer);
    free(c->early);
    os_file_close(c->fd);
    c->fd = -1;
    c->next = loop->free;
    loop->free = (unsigned)(c - loop->table);
    atomic_fetch_sub_explicit(&loop->live, 1, memory_order_release);
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

/* ---- sending ---- */

/* A file is sent by the loop itself: a ring has no sendfile, and its splice goes through another
 * thread. The call must not block, but a descriptor that does not block is one that the ring does
 * not wait for. */
static enum session_want send_file(struct model_ringloop *loop, struct model_ringconnection *c)
{
    int on = 1;
    int off = 0;
    if (ioctl(c->fd, FIONBIO, &on) < 0)
        return WANT_CLOSE;
    enum session_want want =
        model_transfer_send(&c->session, c->fd, MSG_DONTWAIT, TURN_BYTES, loop->now_ns);
    if (ioctl(c->fd, FIONBIO, &off) < 0)
        return WANT_CLOSE;
    return want;
}

static enum session_want send_output(struct model_ringloop *loop, struct model_ringconnection *c)
{
    struct session_out out = session_output(&c->session);
    if (out.file_len > 0) {
        enum session_want want = send_file(loop, c);
        if (want != WANT_WRITE)
            return want;
        struct io_uring_sqe *entry = model_ring_entry(&loop->ring, about(loop, c, ABOUT_ROOM));
        io_uring_prep_poll_add(entry, c->fd, POLLOUT);
        c->awaiting_room = true;
        return WANT_WRITE;
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
    if (result == -EINTR || result == -EAGAIN)
        result = 0;
    if (c->leaving || result < 0)
        model_ringconnection_close(loop, c);
    else
        follow(loop, c, session_sent(&c->session, (size_t)result, loop->now_ns));
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
    struct model_ringconnection_early *early = c->early;
    enum session_want want = WANT_READ;
    while (early->at < early->len && want == WANT_READ) {
        size_t room = session_room(&c->session);
        size_t len = early->len - early->at < room ? early->len - early->at : room;
        early->at += len;
        want =
            session_feed(&c->session, span_of(early->bytes + early->at - len, len), loop->now_ns);
    }
    if (early->at == early->len) {
        free(early);
        c->early = NULL;
    }
    return want;
}

static bool keep_early(struct model_ringconnection *c, struct span in)
{
    struct model_ringconnection_early *early = c->early;
    size_t waiting = early ? early->len - early->at : 0;
    if (waiting + in.len > EARLY_MAX)
        return false;
    struct model_ringconnection_early *grown = malloc(sizeof(*grown) + waiting + in.len);
    if (!grown)
        return false;
    *grown = (struct model_ringconnection_early){ .len = waiting + in.len };
    if (waiting > 0)
        memcpy(grown->bytes, early->bytes + early->at, waiting);
    memcpy(grown->bytes + waiting, in.at, in.len);
    free(early);
    c->early = grown;
    return true;
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
    if (!keep_early(c, in))
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
        model_ringconnection_close(loop, c);
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

static void follow(struct model_ringloop *loop, struct model_ringconnection *c,
                   enum session_want want)
{
    for (;;) {
        if (want == WANT_WRITE && !is_busy(c))
            want = send_output(loop, c);
        if (want == WANT_READ && c->early) {
            want = use_early(loop, c);
            continue;
        }
        if (want != WANT_HALF_CLOSE)
            break;
        (void)shutdown(c->fd, SHUT_WR); /* fails only when the peer is gone: receiving will tell */
        want = WANT_READ;
    }
    if (want == WANT_READ && c->ended)
        want = session_feed(&c->session, span_of(NULL, 0), loop->now_ns);
    if (want == WANT_CLOSE) {
        model_ringconnection_close(loop, c);
        return;
    }
    if (want == WANT_READ)
        receive(loop, c);
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
    struct session_peer peer = { 0 };
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);
    if (getpeername(fd, (struct sockaddr *)&address, &len) < 0)
        return peer; /* gone already */
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address;
        peer.family = 4;
        memcpy(peer.address, &in->sin_addr, 4);
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
        peer.family = mapped ? 4 : 6;
        memcpy(peer.address, in->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    }
    return peer;
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
        atomic_fetch_sub_explicit(&loop->live, 1, memory_order_release);
        return;
    }
    c->fd = fd;
    c->early = NULL;
    c->ended = c->kept = c->dispensable = c->leaving = false;
    session_open(&c->session, &loop->worker, peer_of(fd), loop->now_ns);
    follow(loop, c, WANT_READ);
}
