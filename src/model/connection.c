/* SPDX-License-Identifier: MIT */
#include "model/connection.h"

#include "log/error.h"
#include "model/model.h"
#include "model/peer.h"
#include "model/reactor.h"
#include "model/transfer.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <sys/epoll.h>

enum { TURN_BYTES = 2048 * 1024 }; /* one connection's share of a turn of the loop */

#define INPUT_EVENTS (EPOLLIN | EPOLLRDHUP)

static int fd_of(const struct model_reactor *r, const struct model_connection *c)
{
    return (int)(c - r->table);
}

static void count_one_less(struct model_reactor *r)
{
    if (atomic_fetch_sub_explicit(&r->live, 1, memory_order_release) == r->connections_max)
        model_reactor_has_room(r);
}

void model_connection_close(struct model_reactor *r, struct model_connection *c)
{
    session_close(&c->session);
    stats_add(&r->worker.stats, STATS_connections_closed, 1);
    model_wheel_remove(&r->wheel, &c->timer);
    if (c->watched && r->placement && r->placement->forks)
        (void)epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd_of(r, c), NULL);
    c->watched = 0;
    /* The number may be another thread's the moment it is closed, and with it
     * this struct: the release pairs with the acquire in model_connection_begin. */
    atomic_store_explicit(&c->owner, NULL, memory_order_release);
    os_file_close(fd_of(r, c));
    ipc_fdpass_ended(&r->server->intake);
    count_one_less(r);
}

bool model_connection_watch(struct model_reactor *r, struct model_connection *c,
                            enum model_event kind, uint32_t events)
{
    struct epoll_event event = {
        .events = events,
        .data.u64 = model_event_data(kind, fd_of(r, c)),
    };
    int how = c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(r->epoll_fd, how, fd_of(r, c), &event) < 0)
        return false;
    c->watched = events;
    return true;
}

static bool watch(struct model_reactor *r, struct model_connection *c, uint32_t events)
{
    if (c->watched == events)
        return true;
    return model_connection_watch(r, c, MODEL_EVENT_CONNECTION, events);
}

/* ---- following what the session wants ---- */

/* A timer that fires too early is put off when it fires; only an earlier
 * deadline has to be told to the wheel. */
static void keep_time(struct model_reactor *r, struct model_connection *c)
{
    uint64_t due_ns = session_deadline_ns(&c->session);
    if (__builtin_expect(!c->timer.next || due_ns < c->timer.due_ns - WHEEL_TICK_NS, 0))
        model_wheel_add(&r->wheel, &c->timer, due_ns);
}

static void follow(struct model_reactor *r, struct model_connection *c, enum session_want want)
{
    if (want == WANT_WRITE)
        want = model_transfer_send(&c->session, fd_of(r, c), TURN_BYTES, r->now_ns);
    if (want == WANT_HALF_CLOSE) {
        (void)shutdown(fd_of(r, c), SHUT_WR); /* fails only when the peer is gone: recv will tell */
        want = WANT_READ;
    }
    if (want == WANT_CLOSE || !watch(r, c, want == WANT_WRITE ? EPOLLOUT : INPUT_EVENTS)) {
        model_connection_close(r, c);
        return;
    }
    keep_time(r, c);
}

static void fail(struct model_reactor *r, struct model_connection *c, int error)
{
    session_failed(&c->session, error);
    model_connection_close(r, c);
}

static void receive(struct model_reactor *r, struct model_connection *c)
{
    size_t room = session_room(&c->session);
    ssize_t len = recv(fd_of(r, c), r->input, room, MSG_DONTWAIT);
    if (len >= 0)
        follow(r, c, session_feed(&c->session, span_of(r->input, (size_t)len), r->now_ns));
    else if (errno == EAGAIN || errno == EINTR)
        follow(r, c, WANT_READ);
    else
        fail(r, c, errno);
}

void model_connection_event(struct model_reactor *r, struct model_connection *c, uint32_t events)
{
    if (c->watched & EPOLLIN)
        receive(r, c);
    else if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        follow(r, c, WANT_WRITE);
}

void model_connection_resume(struct model_reactor *r, struct model_connection *c)
{
    if (c->watched & EPOLLOUT)
        follow(r, c, WANT_WRITE);
    else
        receive(r, c);
}

void model_connection_expire(struct model_reactor *r, struct model_wheel_node *node)
{
    struct model_connection *c = model_connection_of(node);
    if (r->now_ns < session_deadline_ns(&c->session))
        keep_time(r, c);
    else
        follow(r, c, session_expire(&c->session, r->now_ns));
}

/* ---- accepting ---- */

int model_connection_accept(struct model_reactor *r, int listener_fd, struct session_peer *ret_peer)
{
    static struct log_error_limit limit;
    struct os_socket_address address;
    struct ipc_fdpass_receiver *intake = &r->server->intake;
    int fd = listener_fd == intake->fd ? ipc_fdpass_receive(intake, &address)
                                       : os_socket_accept(listener_fd, &address);
    if (fd >= 0 && (size_t)fd >= r->table_size) {
        os_file_close(fd);
        ipc_fdpass_ended(intake);
        fd = -EMFILE;
    }
    if (fd < 0) {
        if (fd != -EAGAIN && fd != -EPIPE)
            log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s",
                              strerror(-fd));
        return fd;
    }
    stats_add(&r->worker.stats, STATS_connections_accepted, 1);
    *ret_peer = model_peer_of(&address);
    return fd;
}

static void begin(struct model_reactor *r, int fd, struct session_peer peer, bool refuse)
{
    struct model_connection *c = &r->table[fd];
    CHECK(atomic_load_explicit(&c->owner, memory_order_acquire) == NULL);
    atomic_store_explicit(&c->owner, r, memory_order_relaxed);
    session_open(&c->session, &r->worker, peer, r->now_ns);
    if (refuse)
        session_refuse(&c->session);
    receive(r, c); /* the request is often here already, and then epoll need not be asked */
}

void model_connection_begin(struct model_reactor *r, int fd, struct session_peer peer)
{
    begin(r, fd, peer, false);
}

void model_connection_refuse(struct model_reactor *r, int fd, struct session_peer peer)
{
    begin(r, fd, peer, true);
}

/* ---- from loop to loop ---- */

/* From here to the adoption it is nobody's: its number cannot be given anew while it is open, and
 * `handed_lock` passes on what was written. */
bool model_connection_hand_over(struct model_reactor *r, struct model_connection *c,
                                struct model_reactor *to)
{
    int fd = fd_of(r, c);
    if (!session_idle(&c->session) || c->watched != INPUT_EVENTS ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
        return false;
    c->watched = 0;
    model_wheel_remove(&r->wheel, &c->timer);
    atomic_store_explicit(&c->owner, NULL, memory_order_relaxed);
    bool handed = model_reactor_hand(to, (struct model_handed){ .fd = fd, .moved = true });
    if (handed)
        count_one_less(r);
    else
        model_connection_adopt(r, fd);
    return handed;
}

void model_connection_adopt(struct model_reactor *r, int fd)
{
    struct model_connection *c = &r->table[fd];
    atomic_store_explicit(&c->owner, r, memory_order_relaxed);
    session_move(&c->session, &r->worker);
    follow(r, c, WANT_READ); /* epoll tells what has come meanwhile */
}
