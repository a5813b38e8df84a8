/* SPDX-License-Identifier: MIT */
#include "model/ringloop.h"

#include "base/duration.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define CLOSE_AGAIN_NS (DURATION_SECOND / 10)

/* ---- waking ---- */

static void watch(struct model_ringloop *loop, int fd, enum model_ringloop_about what)
{
    struct io_uring_sqe *entry = model_ring_entry(&loop->ring, model_ringloop_about(what, 0));
    io_uring_prep_poll_multishot(entry, fd, POLLIN);
}

void model_ringloop_wake(const struct model_ringloop *loop)
{
    uint64_t one = 1;
    (void)!write(loop->wake_fd, &one, sizeof(one)); /* full means that it is awake already */
}

void model_ringloop_wake_all(const struct model_ringloop *loop)
{
    for (unsigned i = 0; i < loop->count; i++)
        model_ringloop_wake(&loop->all[i]);
}

/* ---- draining ---- */

static void close_all(struct model_ringloop *loop, bool idle)
{
    for (unsigned i = 0; i < loop->table_used; i++) {
        struct model_ringconnection *c = &loop->table[i];
        if (c->fd < 0)
            continue;
        if (idle)
            model_ringconnection_close_idle(loop, c);
        else
            model_ringconnection_close(loop, c);
    }
}

static void begin_drain(struct model_ringloop *loop)
{
    loop->retiring = true;
    loop->drain_idle_ns = loop->now_ns + loop->server->drain_idle_ns;
    loop->drain_end_ns = loop->now_ns + loop->server->drain_timeout_ns;
}

/* Nothing is left to do, or it cannot be done, and nobody hands anything over any more. */
static bool leave(struct model_ringloop *loop, bool failed)
{
    pthread_mutex_lock(&loop->handed_lock);
    loop->left = failed || atomic_load_explicit(&loop->live, memory_order_acquire) == 0;
    bool left = loop->left;
    pthread_mutex_unlock(&loop->handed_lock);
    if (left && loop->index > 0)
        model_ringloop_wake(&loop->all[0]);
    return left;
}

static bool has_left(struct model_ringloop *loop)
{
    pthread_mutex_lock(&loop->handed_lock);
    bool left = loop->left;
    pthread_mutex_unlock(&loop->handed_lock);
    return left;
}

/* The first loop stays until the others have left: it reads the signals. */
static bool others_are_there(const struct model_ringloop *loop)
{
    for (unsigned i = 1; loop->index == 0 && i < loop->count; i++)
        if (!has_left(&loop->all[i]))
            return true;
    return false;
}

/* Whether the loop goes on. */
static bool follow_phase(struct model_ringloop *loop)
{
    int phase = atomic_load_explicit(&loop->server->phase, memory_order_acquire);
    if (phase == SERVER_RUNNING) {
        model_ringdoors_keep(loop);
        return true;
    }
    if (!loop->retiring)
        begin_drain(loop);
    bool shut = model_ringdoors_shut(loop);
    if (loop->drain_idle_ns != 0 && loop->now_ns >= loop->drain_idle_ns) {
        close_all(loop, true);
        loop->drain_idle_ns = 0;
    }
    if (phase == SERVER_STOPPING || loop->now_ns >= loop->drain_end_ns) {
        close_all(loop, false);
        loop->drain_end_ns = loop->now_ns + CLOSE_AGAIN_NS;
    }
    return !shut || others_are_there(loop) || !leave(loop, false);
}

/* ---- the loop ---- */

static void read_signals(struct model_ringloop *loop)
{
    int signal;
    while ((signal = os_signal_read(loop->server->signal_fd)) > 0)
        if (server_signal(loop->server, signal))
            model_ringloop_wake_all(loop);
}

static void empty_wake(const struct model_ringloop *loop)
{
    uint64_t count;
    (void)!read(loop->wake_fd, &count,
                sizeof(count)); /* what it was woken for is looked up anyway */
}

static void act_on(struct model_ringloop *loop, const struct io_uring_cqe *done)
{
    size_t number = (size_t)(done->user_data >> RINGLOOP_ABOUT_BITS);
    switch ((enum model_ringloop_about)(done->user_data & ((1 << RINGLOOP_ABOUT_BITS) - 1))) {
    case ABOUT_RECEIVE:
        model_ringconnection_received(loop, &loop->table[number], done);
        return;
    case ABOUT_SEND:
        model_ringconnection_sent(loop, &loop->table[number], done->res);
        return;
    case ABOUT_ROOM:
        model_ringconnection_has_room(loop, &loop->table[number]);
        return;
    case ABOUT_ACCEPT:
        model_ringdoor_accepted(loop, number, done);
        return;
    case ABOUT_LISTENER:
        model_ringdoor_knocked(loop, number, done->res);
        return;
    case ABOUT_WAKE:
        empty_wake(loop);
        model_ringdoors_take_handed(loop);
        if (!(done->flags & IORING_CQE_F_MORE))
            watch(loop, loop->wake_fd, ABOUT_WAKE);
        return;
    case ABOUT_SIGNAL:
        read_signals(loop);
        if (!(done->flags & IORING_CQE_F_MORE))
            watch(loop, loop->server->signal_fd, ABOUT_SIGNAL);
        return;
    case ABOUT_NOTHING:
        return;
    }
    CHECK(false);
}

static void act_on_all(struct model_ringloop *loop)
{
    struct io_uring *uring = &loop->ring.uring;
    struct io_uring_cqe *done;
    unsigned head;
    unsigned count = 0;
    io_uring_for_each_cqe(uring, head, done)
    {
        act_on(loop, done);
        if (++count == RINGLOOP_COMPLETIONS)
            break;
    }
    io_uring_cq_advance(uring, count);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t due_ns(struct model_ringloop *loop)
{
    uint64_t due = earlier(model_wheel_next_ns(&loop->wheel), session_thread_due_ns(&loop->worker));
    if (!loop->retiring)
        due = earlier(due, loop->listen_again_ns ? loop->listen_again_ns : UINT64_MAX);
    else
        due = earlier(due, loop->drain_idle_ns ? loop->drain_idle_ns : loop->drain_end_ns);
    return due;
}

/* A thread that sleeps must not keep others from freeing what left the cache. */
static int wait_for_completions(struct model_ringloop *loop)
{
    bool others = loop->server->cache_readers > 1;
    uint64_t due = due_ns(loop);
    if (others)
        session_thread_rest(&loop->worker);
    int rc = model_ring_wait(&loop->ring, loop->now_ns, due);
    if (others)
        session_thread_resume(&loop->worker);
    loop->now_ns = os_clock_now_ns();
    session_thread_tick(&loop->worker, loop->now_ns, os_clock_wall_s());
    return rc;
}

int model_ringloop_run(struct model_ringloop *loop)
{
    int rc = model_ring_enable(&loop->ring);
    if (rc < 0) {
        (void)leave(loop, true);
        return rc;
    }
    watch(loop, loop->wake_fd, ABOUT_WAKE);
    if (loop->index == 0)
        watch(loop, loop->server->signal_fd, ABOUT_SIGNAL);
    loop->now_ns = os_clock_now_ns();
    session_thread_tick(&loop->worker, loop->now_ns, os_clock_wall_s());
    while (follow_phase(loop)) {
        rc = wait_for_completions(loop);
        if (rc < 0)
            break;
        act_on_all(loop);
        struct model_wheel_node *node;
        while ((node = model_wheel_expired(&loop->wheel, loop->now_ns)))
            model_ringconnection_expire(loop, node);
    }
    if (rc < 0)
        (void)leave(loop, true);
    return rc;
}
