/* SPDX-License-Identifier: MIT */
#include "model/ringloop.h"

#include "log/error.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    /* A loop that may take fewer connections than can wait in the kernel accepts them one at a
     * time: once told to accept many, the kernel lets in all who wait. */
    MANY_FROM = 2 * 4096
};
#define PAUSE_NS (OS_CLOCK_SECOND / 10)

/* ---- waking ---- */

static void watch(struct model_ringloop *loop, int fd, enum model_ringloop_about what)
{
    struct io_uring_sqe *entry = model_ring_entry(&loop->ring, model_ringloop_about(what, 0));
    io_uring_prep_poll_multishot(entry, fd, POLLIN);
}

static void wake(const struct model_ringloop *loop)
{
    uint64_t one = 1;
    (void)!write(loop->wake_fd, &one, sizeof(one)); /* full means that it is awake already */
}

void model_ringloops_wake(const struct model_ringloop *loops)
{
    for (unsigned i = 0; i < loops->count; i++)
        wake(&loops[i]);
}

/* ---- accepting ---- */

static int *listener_set(const struct model_ringloop *loop)
{
    return loop->server->listeners + (size_t)loop->index * loop->server->listener_count;
}

/* The loop that a new connection goes to: the emptiest, unless this one is
 * nearly as empty, for handing over costs more than a little unevenness. */
static struct model_ringloop *choose_owner(struct model_ringloop *loop)
{
    struct model_ringloop *emptiest = loop;
    unsigned mine = atomic_load_explicit(&loop->live, memory_order_relaxed);
    unsigned least = mine;
    for (unsigned i = 0; i < loop->count; i++) {
        unsigned live = atomic_load_explicit(&loop->all[i].live, memory_order_relaxed);
        if (live < least) {
            least = live;
            emptiest = &loop->all[i];
        }
    }
    unsigned margin = least / 20 > 2 ? least / 20 : 2;
    return mine > least + margin ? emptiest : loop;
}

static bool hand_over(struct model_ringloop *to, int fd)
{
    pthread_mutex_lock(&to->handed_lock);
    bool room = !to->left && to->handed_count < RINGLOOP_HANDED_MAX;
    if (room) {
        to->handed[to->handed_count++] = fd;
        atomic_fetch_add_explicit(&to->live, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&to->handed_lock);
    if (room)
        wake(to);
    return room;
}

static void take_handed(struct model_ringloop *loop)
{
    int handed[RINGLOOP_HANDED_MAX];
    pthread_mutex_lock(&loop->handed_lock);
    unsigned count = loop->handed_count;
    memcpy(handed, loop->handed, count * sizeof(handed[0]));
    loop->handed_count = 0;
    pthread_mutex_unlock(&loop->handed_lock);
    for (unsigned i = 0; i < count; i++)
        model_ringconnection_begin(loop, handed[i]);
}

static void place(struct model_ringloop *loop, int fd)
{
    struct model_ringloop *owner = loop->count > 1 ? choose_owner(loop) : loop;
    if (owner != loop && hand_over(owner, fd))
        return;
    atomic_fetch_add_explicit(&loop->live, 1, memory_order_relaxed);
    model_ringconnection_begin(loop, fd);
}

static void tell_failure(int error)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s", strerror(error));
}

static void accepted(struct model_ringloop *loop, unsigned number, const struct io_uring_cqe *done)
{
    struct model_ringloop_door *door = &loop->doors[number];
    if (!(done->flags & IORING_CQE_F_MORE))
        door->waiting = door->cancelling = false;
    switch (-done->res) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        tell_failure(-done->res);
        loop->listen_again_ns = loop->now_ns + PAUSE_NS;
        door->empty = true; /* for a drain has no time to wait */
        break;
    case ECANCELED:
        door->empty = true;
        break;
    default:
        if (done->res >= 0)
            place(loop, done->res);
        break; /* other errors are of the connection that was to be accepted */
    }
}

static void stop_accepting(struct model_ringloop *loop, unsigned number)
{
    struct model_ringloop_door *door = &loop->doors[number];
    if (!door->waiting || door->cancelling)
        return;
    door->cancelling = true;
    model_ring_cancel(&loop->ring, model_ringloop_about(ABOUT_ACCEPT, number),
                      model_ringloop_about(ABOUT_NOTHING, 0));
}

static void start_accepting(struct model_ringloop *loop, unsigned number, bool many)
{
    int fd = listener_set(loop)[number];
    struct model_ringloop_door *door = &loop->doors[number];
    struct io_uring_sqe *entry =
        model_ring_entry(&loop->ring, model_ringloop_about(ABOUT_ACCEPT, number));
    if (many)
        io_uring_prep_multishot_accept(entry, fd, NULL, NULL, SOCK_CLOEXEC);
    else
        io_uring_prep_accept(entry, fd, NULL, NULL, SOCK_CLOEXEC);
    *door = (struct model_ringloop_door){ .waiting = true, .many = many };
}

/* Has each listener accept as many as there is room for. */
static void keep_accepting(struct model_ringloop *loop)
{
    unsigned live = atomic_load_explicit(&loop->live, memory_order_relaxed);
    unsigned room = live < loop->connections_max ? loop->connections_max - live : 0;
    if (room == 0 && choose_owner(loop) != loop)
        room = 1;
    if (loop->now_ns < loop->listen_again_ns)
        return;
    loop->listen_again_ns = 0;
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        struct model_ringloop_door *door = &loop->doors[i];
        if (door->waiting && (room == 0 || (door->many && room < MANY_FROM)))
            stop_accepting(loop, i);
        else if (!door->waiting && room > 0 && listener_set(loop)[i] >= 0)
            start_accepting(loop, i, room >= MANY_FROM);
    }
}

/* Whom the kernel has let in is served; from then on it lets nobody in, once the other processes
 * have let go of the listeners too. An accept that is cancelled at once either takes one who waits
 * or tells that nobody does. Returns whether all is shut. */
static bool shut_doors(struct model_ringloop *loop)
{
    bool shut = true;
    unsigned live = atomic_load_explicit(&loop->live, memory_order_relaxed);
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        struct model_ringloop_door *door = &loop->doors[i];
        int *fd = &listener_set(loop)[i];
        if (*fd < 0)
            continue;
        if (!door->waiting && (door->empty || live >= loop->connections_max)) {
            os_file_close(*fd);
            *fd = -1;
            continue;
        }
        shut = false;
        if (!door->waiting)
            start_accepting(loop, i, false);
        stop_accepting(loop, i);
    }
    return shut;
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
    for (unsigned i = 0; i < loop->server->listener_count; i++)
        loop->doors[i].empty = false;
}

/* Nothing is left to do, and nobody hands anything over any more. */
static bool leave(struct model_ringloop *loop)
{
    pthread_mutex_lock(&loop->handed_lock);
    loop->left = atomic_load_explicit(&loop->live, memory_order_acquire) == 0;
    bool left = loop->left;
    pthread_mutex_unlock(&loop->handed_lock);
    if (left && loop->index > 0)
        wake(&loop->all[0]);
    return left;
}

/* The first loop stays until the others have left: it reads the signals. */
static bool others_are_there(const struct model_ringloop *loop)
{
    for (unsigned i = 1; loop->index == 0 && i < loop->count; i++)
        if (atomic_load_explicit(&loop->all[i].live, memory_order_acquire) > 0)
            return true;
    return false;
}

/* Whether the loop goes on. */
static bool follow_phase(struct model_ringloop *loop)
{
    int phase = atomic_load_explicit(&loop->server->phase, memory_order_acquire);
    if (phase == SERVER_RUNNING) {
        keep_accepting(loop);
        return true;
    }
    if (!loop->retiring)
        begin_drain(loop);
    bool shut = shut_doors(loop);
    if (loop->drain_idle_ns != 0 && loop->now_ns >= loop->drain_idle_ns) {
        close_all(loop, true);
        loop->drain_idle_ns = 0;
    }
    if (phase == SERVER_STOPPING || loop->now_ns >= loop->drain_end_ns)
        close_all(loop, false);
    return !shut || others_are_there(loop) || !leave(loop);
}

/* ---- the loop ---- */

static void read_signals(struct model_ringloop *loop)
{
    int signal;
    while ((signal = os_signal_read(loop->server->signal_fd)) > 0)
        if (server_signal(loop->server, signal))
            model_ringloops_wake(loop->all);
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
        accepted(loop, (unsigned)number, done);
        return;
    case ABOUT_WAKE:
        empty_wake(loop);
        take_handed(loop);
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
    uint64_t due = earlier(model_wheel_next_ns(&loop->wheel), session_worker_due_ns(&loop->worker));
    if (!loop->retiring)
        due = earlier(due, loop->listen_again_ns ? loop->listen_again_ns : UINT64_MAX);
    else
        due = earlier(due, loop->drain_idle_ns ? loop->drain_idle_ns : loop->drain_end_ns);
    return due;
}

/* A thread that sleeps must not keep others from freeing what left the cache. */
static int wait_for_completions(struct model_ringloop *loop)
{
    bool others = loop->count > 1;
    uint64_t due = due_ns(loop);
    if (others)
        session_worker_rest(&loop->worker);
    int rc = model_ring_wait(&loop->ring, loop->now_ns, due);
    if (others)
        session_worker_resume(&loop->worker);
    loop->now_ns = os_clock_now_ns();
    session_worker_tick(&loop->worker, loop->now_ns, os_clock_wall_s());
    return rc;
}

/* The ring waits only for descriptors that block. */
static int make_listeners_block(const struct model_ringloop *loop, bool block)
{
    const int *set = listener_set(loop);
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        int flags = set[i] < 0 ? 0 : fcntl(set[i], F_GETFL);
        int wanted = block ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;
        if (flags < 0 || (set[i] >= 0 && fcntl(set[i], F_SETFL, wanted) < 0))
            return -errno;
    }
    return 0;
}

int model_ringloop_run(struct model_ringloop *loop)
{
    int rc = model_ring_enable(&loop->ring);
    if (rc == 0)
        rc = make_listeners_block(loop, true);
    if (rc < 0)
        return rc;
    watch(loop, loop->wake_fd, ABOUT_WAKE);
    if (loop->index == 0)
        watch(loop, loop->server->signal_fd, ABOUT_SIGNAL);
    loop->now_ns = os_clock_now_ns();
    session_worker_tick(&loop->worker, loop->now_ns, os_clock_wall_s());
    while (follow_phase(loop)) {
        rc = wait_for_completions(loop);
        if (rc < 0)
            return rc;
        act_on_all(loop);
        struct model_wheel_node *node;
        while ((node = model_wheel_expired(&loop->wheel, loop->now_ns)))
            model_ringconnection_expire(loop, node);
    }
    return 0;
}
