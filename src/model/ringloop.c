/* SPDX-License-Identifier: MIT */
#include "model/ringloop.h"

#include "model/model.h"
#include "model/ringconnection.h"
#include "os/file.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    COMPLETIONS_MAX = 256, /* acted on before the clock is read again */
    SPARE = 4096, /* connections beyond the limit: the kernel accepts until a cancel arrives */

    /* With capacity for this many more connections, the kernel accepts on its own. With less it
     * only reports that connections wait: it would accept all of them, and one more while another
     * loop takes the last place. */
    MANY_FROM = 4096
};

static struct model_ringloop *ringloop_of(struct model_loop *loop)
{
    return (struct model_ringloop *)loop;
}

/* ---- accepting ---- */

static void act_on_accepted(struct model_ringloop *r, size_t number,
                            const struct io_uring_cqe *done)
{
    struct model_ringlistener *listener = &r->listeners[number];
    if (!(done->flags & IORING_CQE_F_MORE))
        listener->accepting = listener->cancelling = false;
    if (done->res >= 0)
        model_loop_place(&r->loop, model_loop_listeners(&r->loop)[number], done->res);
    else if (done->res != -ECANCELED && !os_socket_lost_connection(-done->res))
        model_loop_cannot_accept(&r->loop, -done->res);
}

static void act_on_listener(struct model_ringloop *r, size_t number, int result)
{
    struct model_ringlistener *listener = &r->listeners[number];
    listener->watching = listener->cancelling = false;
    if (result >= 0) /* when more wait, the kernel reports it again */
        (void)model_loop_accept(&r->loop, model_loop_listeners(&r->loop)[number]);
}

static void start_listener(struct model_ringloop *r, size_t number, bool accepting)
{
    struct model_ringlistener *listener = &r->listeners[number];
    int fd = model_loop_listeners(&r->loop)[number];
    struct io_uring_sqe *entry = model_ring_entry(
        &r->ring, model_ringloop_about(accepting ? ABOUT_ACCEPT : ABOUT_LISTENER, number));
    if (accepting)
        io_uring_prep_multishot_accept(entry, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    else
        io_uring_prep_poll_add(entry, fd, POLLIN);
    listener->accepting = accepting;
    listener->watching = !accepting;
}

static void stop_listener(struct model_ringloop *r, size_t number)
{
    struct model_ringlistener *listener = &r->listeners[number];
    if (listener->cancelling)
        return;
    listener->cancelling = true;
    uint64_t what =
        model_ringloop_about(listener->accepting ? ABOUT_ACCEPT : ABOUT_LISTENER, number);
    model_ring_cancel(&r->ring, what, model_ringloop_about(ABOUT_NOTHING, 0));
}

/* For each connection the kernel wakes one of the rings that accept. That may be the ring of a dead
 * process, which accepts nothing. It wakes all that only wait for a report. */
static bool may_accept_many(const struct model_loop *loop)
{
    return loop->now_ns >= loop->server->dead_waiters_until_ns &&
           atomic_load_explicit(&loop->live, memory_order_relaxed) + MANY_FROM <=
               loop->connections_max;
}

/* Once for each turn: accepts from every listener, while there is capacity. */
static void keep_listening(struct model_ringloop *r)
{
    struct model_loop *loop = &r->loop;
    if (!model_loop_may_listen(loop))
        return;
    const bool many = may_accept_many(loop);
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        const struct model_ringlistener *listener = &r->listeners[i];
        if (listener->accepting && !many)
            stop_listener(r, i);
        else if (!listener->accepting && !listener->watching && model_loop_listeners(loop)[i] >= 0)
            start_listener(r, i, many);
    }
}

/* ---- draining ---- */

/* Connections that the kernel has already accepted are served. Those that arrive faster than they
 * can be placed are reset. The port is free once the other processes have closed their copies of
 * the listeners. */
static void close_ring_listeners(struct model_loop *loop)
{
    struct model_ringloop *r = ringloop_of(loop);
    uint64_t until_ns = loop->now_ns + loop->server->drain_idle_ns;
    int *fd = model_loop_listeners(loop);
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        if (fd[i] < 0)
            continue;
        if (r->listeners[i].accepting || r->listeners[i].watching) {
            stop_listener(r, i); /* it is closed in the turn after its cancel */
            continue;
        }
        model_loop_accept_rest(loop, fd[i], until_ns);
        os_file_close(fd[i]);
        fd[i] = -1;
    }
}

static void each_on_ring(struct model_loop *loop,
                         void (*act)(struct model_ringloop *r, struct model_ringconnection *c))
{
    struct model_ringloop *r = ringloop_of(loop);
    for (unsigned i = 0; i < r->table_used; i++)
        if (r->table[i].fd >= 0)
            act(r, &r->table[i]);
}

static void drain_on_ring(struct model_loop *loop, bool first_turn)
{
    close_ring_listeners(loop);
    if (first_turn)
        each_on_ring(loop, model_ringconnection_drain);
}

static bool has_listener(const struct model_loop *loop)
{
    for (unsigned i = 0; i < loop->server->listener_count; i++)
        if (model_loop_listeners(loop)[i] >= 0)
            return true;
    return false;
}

static void close_idle_on_ring(struct model_loop *loop)
{
    each_on_ring(loop, model_ringconnection_close_idle);
}

static void close_on_ring(struct model_loop *loop)
{
    each_on_ring(loop, model_ringconnection_close);
}

/* ---- making space ---- */

static struct model_ringconnection *ringconnection_of(void *timer)
{
    return (struct model_ringconnection *)((uintptr_t)timer -
                                           offsetof(struct model_ringconnection, timer));
}

static void search_idle_on_ring(struct model_loop *loop)
{
    struct model_wheel_node *node = NULL;
    while ((node = model_wheel_next(&loop->wheel, node)))
        model_idle_offer(loop, node);
}

static uint64_t ring_idle_since_ns(struct model_loop *loop, void *timer)
{
    (void)loop;
    const struct model_ringconnection *c = ringconnection_of(timer);
    return c->fd < 0 || c->leaving || c->dispensable ? MODEL_IDLE_NEVER
                                                     : session_idle_since_ns(&c->session);
}

static void displace_on_ring(struct model_loop *loop, void *timer)
{
    model_ringconnection_close_idle(ringloop_of(loop), ringconnection_of(timer));
}

static const struct model_idle_kind ring_idle = {
    .search = search_idle_on_ring,
    .since_ns = ring_idle_since_ns,
    .close = displace_on_ring,
};

static void begin_on_ring(struct model_loop *loop, int fd, struct session_origin origin)
{
    model_ringconnection_begin(ringloop_of(loop), fd, origin);
}

static void resume_on_ring(struct model_loop *loop, struct session *s)
{
    /* The session is the first member of its connection. */
    model_ringconnection_resume(ringloop_of(loop), (struct model_ringconnection *)s);
}

static const struct model_loop_kind ringloop_kind = {
    .bytes = sizeof(struct model_ringloop),
    .begin = begin_on_ring,
    .resume = resume_on_ring,
    .drain = drain_on_ring,
    .still_accepts = has_listener,
    .close_idle = close_idle_on_ring,
    .close_all = close_on_ring,
};

/* ---- making and ending ---- */

static int open_ringloop(struct model_ringloop *r)
{
    void *table = mmap(NULL, r->table_size * sizeof(*r->table), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return -errno;
    r->table = table;
    r->listeners = calloc(r->loop.server->listener_count, sizeof(*r->listeners));
    return r->listeners ? model_loop_open(&r->loop) : -ENOMEM;
}

int model_ringloops_new(struct server *server, unsigned count, struct model_ringloop **ret_loops)
{
    struct model_ringloop *first =
        (struct model_ringloop *)model_loops_new(server, count, &ringloop_kind);
    if (!first)
        return -ENOMEM;
    *ret_loops = first;
    int rc = 0;
    for (unsigned i = 0; i < count && rc == 0; i++) {
        struct model_ringloop *r = model_ringloop_at(first, i);
        r->table_size = r->free = r->loop.connections_max + SPARE;
        r->loop.idle.kind = &ring_idle;
        rc = open_ringloop(r);
    }
    return rc;
}

void model_ringloops_free(struct model_ringloop *loops)
{
    for (unsigned i = 0; loops && i < loops->loop.count; i++) {
        struct model_ringloop *r = model_ringloop_at(loops, i);
        model_ring_close(&r->ring);
        model_loop_close(&r->loop);
        if (r->table)
            munmap(r->table, r->table_size * sizeof(*r->table));
        free(r->listeners);
    }
    free(loops);
}

/* ---- the loop ---- */

static void report_input(struct model_ringloop *r, int fd, enum model_ringloop_about what)
{
    struct io_uring_sqe *entry = model_ring_entry(&r->ring, model_ringloop_about(what, 0));
    io_uring_prep_poll_multishot(entry, fd, POLLIN);
}

static void act_on_completion(struct model_ringloop *r, const struct io_uring_cqe *done)
{
    size_t number = (size_t)(done->user_data >> RINGLOOP_ABOUT_BITS);
    bool ended = !(done->flags & IORING_CQE_F_MORE);
    switch ((enum model_ringloop_about)(done->user_data & ((1 << RINGLOOP_ABOUT_BITS) - 1))) {
    case ABOUT_RECEIVE:
        model_ringconnection_received(r, &r->table[number], done);
        return;
    case ABOUT_SEND:
        model_ringconnection_sent(r, &r->table[number], done->res);
        return;
    case ABOUT_WRITABLE:
        model_ringconnection_writable(r, &r->table[number]);
        return;
    case ABOUT_ACCEPT:
        act_on_accepted(r, number, done);
        return;
    case ABOUT_LISTENER:
        act_on_listener(r, number, done->res);
        return;
    case ABOUT_WAKE:
        model_loop_woken(&r->loop);
        if (ended)
            report_input(r, r->loop.wake_fd, ABOUT_WAKE);
        return;
    case ABOUT_SIGNAL:
        model_loop_read_signals(&r->loop);
        if (ended)
            report_input(r, r->loop.server->signal_fd, ABOUT_SIGNAL);
        return;
    case ABOUT_NOTHING:
        return;
    }
    CHECK(false);
}

static void act_on_completions(struct model_ringloop *r)
{
    struct io_uring *uring = &r->ring.uring;
    struct io_uring_cqe *done;
    unsigned head;
    unsigned count = 0, ready = io_uring_cq_ready(uring);
    r->loop.thread.turn.reported = true; /* later completions belong to the next turn */
    io_uring_for_each_cqe(uring, head, done)
    {
        if (count == COMPLETIONS_MAX || count == ready)
            break;
        act_on_completion(r, done);
        count++;
    }
    io_uring_cq_advance(uring, count);
}

static int wait_for_completions(struct model_ringloop *r)
{
    uint64_t due_ns = model_loop_due_ns(&r->loop);
    model_loop_rest(&r->loop);
    int rc = model_ring_wait(&r->ring, r->loop.now_ns, due_ns);
    model_loop_resume(&r->loop);
    model_loop_tick(&r->loop);
    return rc;
}

static void expire_timers(struct model_ringloop *r)
{
    struct model_wheel_node *node;
    for (unsigned i = 0;
         i < WHEEL_TURN_MAX && (node = model_wheel_expired(&r->loop.wheel, r->loop.now_ns)); i++)
        model_ringconnection_expire(r, node);
}

int model_ringloop_serve(struct model_loop *loop)
{
    struct model_ringloop *r = ringloop_of(loop);
    int rc = model_ring_enable(&r->ring);
    if (rc == 0) {
        report_input(r, loop->wake_fd, ABOUT_WAKE);
        if (loop->index == 0)
            report_input(r, loop->server->signal_fd, ABOUT_SIGNAL);
        model_loop_tick(loop);
    }
    while (rc == 0 && model_loop_continues(loop)) {
        keep_listening(r);
        rc = wait_for_completions(r);
        if (rc < 0)
            break;
        act_on_completions(r);
        expire_timers(r);
    }
    if (rc < 0)
        model_loop_fail(loop);
    return rc;
}
