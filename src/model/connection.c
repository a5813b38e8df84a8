/* SPDX-License-Identifier: MIT */
#include "model/connection.h"

#include "model/model.h"
#include "model/transfer.h"
#include "os/file.h"

#include <errno.h>
#include <sys/epoll.h>

static int fd_of(const struct model_reactor *r, const struct model_connection *c)
{
    return (int)(c - r->table);
}

void model_connection_close(struct model_reactor *r, struct model_connection *c)
{
    session_close(&c->session);
    stats_writer_add(&r->loop.thread.stats, STATS_connections_closed, 1);
    model_wheel_remove(&r->loop.wheel, &c->timer);
    if (c->watched && r->placement && r->placement->forks)
        (void)epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd_of(r, c), NULL);
    c->watched = 0;
    /* Once the descriptor is closed, another thread may get its number, and with it this struct:
     * the release pairs with the acquire in begin_session. */
    atomic_store_explicit(&c->owner, NULL, memory_order_release);
    os_file_close(fd_of(r, c));
    ipc_fdpass_ended(&r->loop.server->passed);
    model_loop_count_out(&r->loop);
}

bool model_connection_watch(struct model_reactor *r, struct model_connection *c,
                            enum model_event kind, uint32_t events)
{
    struct epoll_event event = {
        .events = events,
        .data.u64 = model_reactor_event_data(kind, fd_of(r, c)),
    };
    int how = c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(r->epoll_fd, how, fd_of(r, c), &event) < 0)
        return false;
    c->watched = events;
    return true;
}

static bool watch_for(struct model_reactor *r, struct model_connection *c, uint32_t events)
{
    if (c->watched == events)
        return true;
    return model_connection_watch(r, c, MODEL_EVENT_CONNECTION, events);
}

/* ---- following what the session wants ---- */

/* The wheel is changed only for an earlier deadline. A timer that fires before its deadline is
 * added again then. */
static void keep_timer(struct model_reactor *r, struct model_connection *c)
{
    uint64_t due_ns = session_deadline_ns(&c->session);
    if (__builtin_expect(!c->timer.next || due_ns < c->timer.due_ns - WHEEL_TICK_NS, 0))
        model_wheel_add(&r->loop.wheel, &c->timer, due_ns);
}

static void follow_want(struct model_reactor *r, struct model_connection *c, unsigned want)
{
    want = model_transfer_follow(&c->session, fd_of(r, c), want, LOOP_TURN_BYTES, r->loop.now_ns);
    if (want == SESSION_CLOSE || !watch_for(r, c, model_connection_events(&c->session, want))) {
        model_connection_close(r, c);
        return;
    }
    keep_timer(r, c);
}

static void fail_connection(struct model_reactor *r, struct model_connection *c, int error)
{
    session_failed(&c->session, error);
    model_connection_close(r, c);
}

static void receive_input(struct model_reactor *r, struct model_connection *c)
{
    size_t room = session_room(&c->session);
    ssize_t len = recv(fd_of(r, c), r->input, room, MSG_DONTWAIT);
    if (len >= 0)
        follow_want(r, c,
                    session_feed(&c->session, span_of(r->input, (size_t)len), r->loop.now_ns));
    else if (errno == EAGAIN || errno == EINTR)
        follow_want(r, c, session_has_output(&c->session) ? SESSION_WRITE : SESSION_READ);
    else
        fail_connection(r, c, errno);
}

/* One step for each event: a step may close the connection. Input comes first, because the session
 * sends after each input, too. An earlier event of the turn may have closed the connection to make
 * space. Then the element has no connection, or one of any loop. If it has one of this loop, the
 * event is not about that. */
void model_connection_event(struct model_reactor *r, struct model_connection *c, uint32_t events)
{
    if (__builtin_expect(atomic_load_explicit(&c->owner, memory_order_relaxed) != r, 0))
        return;
    if (c->watched & EPOLLIN && events & ~EPOLLOUT)
        receive_input(r, c);
    else if (c->watched & EPOLLOUT)
        follow_want(r, c, SESSION_WRITE);
    else if (c->watched == MODEL_LOST_EVENTS && events & MODEL_LOST_EVENTS &&
             model_transfer_is_lost(fd_of(r, c)))
        fail_connection(r, c, ECONNRESET);
}

void model_connection_resume(struct model_reactor *r, struct model_connection *c)
{
    if (session_is_pending(&c->session))
        follow_want(r, c, session_resume(&c->session, r->loop.now_ns));
    else if (c->watched & EPOLLOUT)
        follow_want(r, c, SESSION_WRITE);
    else
        receive_input(r, c);
}

void model_connection_expire(struct model_reactor *r, struct model_wheel_node *node)
{
    struct model_connection *c = model_connection_of(node);
    if (r->loop.now_ns < session_deadline_ns(&c->session))
        keep_timer(r, c);
    else
        follow_want(r, c, model_transfer_expire(&c->session, fd_of(r, c), r->loop.now_ns));
}

void model_connection_drain(struct model_reactor *r, struct model_connection *c)
{
    const unsigned want = session_drain(&c->session, r->loop.now_ns);
    if (want != 0)
        follow_want(r, c, want);
}

/* ---- accepting ---- */

static void begin_session(struct model_reactor *r, int fd, struct session_origin origin,
                          bool refuse)
{
    struct model_connection *c = &r->table[fd];
    CHECK(atomic_load_explicit(&c->owner, memory_order_acquire) == NULL);
    atomic_store_explicit(&c->owner, r, memory_order_relaxed);
    r->loop.thread.turn.reported = false; /* its input may have arrived in this turn */
    session_open(&c->session, &r->loop.thread, origin, r->loop.now_ns);
    if (refuse)
        session_refuse(&c->session);
    receive_input(r, c); /* the request has often arrived, which saves an epoll_ctl */
}

void model_connection_begin(struct model_reactor *r, int fd, struct session_origin origin)
{
    begin_session(r, fd, origin, false);
}

void model_connection_refuse(struct model_reactor *r, int fd, struct session_origin origin)
{
    begin_session(r, fd, origin, true);
}

/* ---- from loop to loop ---- */

/* Until the other reactor adopts it, no reactor owns the connection. The descriptor stays open, so
 * no other connection gets its number. `handed_lock` makes what was written here visible there. */
bool model_connection_hand_over(struct model_reactor *r, struct model_connection *c,
                                struct model_reactor *to)
{
    int fd = fd_of(r, c);
    if (!session_idle(&c->session) || c->watched != MODEL_INPUT_EVENTS ||
        epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
        return false;
    c->watched = 0;
    model_wheel_remove(&r->loop.wheel, &c->timer);
    atomic_store_explicit(&c->owner, NULL, memory_order_relaxed);
    bool handed = model_loop_hand_over(&to->loop, (struct model_handed){ .fd = fd, .moved = true });
    if (handed)
        model_loop_count_out(&r->loop);
    else
        model_connection_adopt(r, fd);
    return handed;
}

void model_connection_adopt(struct model_reactor *r, int fd)
{
    struct model_connection *c = &r->table[fd];
    atomic_store_explicit(&c->owner, r, memory_order_relaxed);
    r->loop.thread.turn.reported = false;
    session_move(&c->session, &r->loop.thread);
    follow_want(r, c, SESSION_READ); /* epoll reports what has arrived meanwhile */
}
