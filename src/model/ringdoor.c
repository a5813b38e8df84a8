/* SPDX-License-Identifier: MIT */
#include "model/ringdoor.h"

#include "base/duration.h"
#include "log/error.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "model/ringloop.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

enum {
    /* With room for so many a loop has the kernel accept all who come. With less it is only told
     * that somebody has: the kernel would also accept all who wait, who may be so many, and one
     * more while another loop takes the last place. */
    MANY_FROM = 4096,
    TURN_ACCEPTS = 64 /* by the loop itself, before others get their turn */
};
#define PAUSE_NS (DURATION_SECOND / 10)

static int *listener_of(const struct model_ringloop *loop, size_t number)
{
    return &loop->server->listeners[loop->index * loop->server->listener_count + number];
}

/* ---- placing ---- */

static unsigned live_of(struct model_ringloop *loop)
{
    return atomic_load_explicit(&loop->live, memory_order_relaxed);
}

/* The loop that a new connection goes to: the emptiest, unless this one is nearly as empty and has
 * room, for handing over costs more than a little unevenness. */
static struct model_ringloop *choose_owner(struct model_ringloop *loop)
{
    struct model_ringloop *emptiest = loop;
    unsigned mine = live_of(loop);
    unsigned least = mine;
    for (unsigned i = 0; i < loop->count; i++) {
        unsigned live = live_of(&loop->all[i]);
        if (live < least) {
            least = live;
            emptiest = &loop->all[i];
        }
    }
    unsigned margin = least / 20 > 2 ? least / 20 : 2;
    return mine > least + margin || mine >= loop->connections_max ? emptiest : loop;
}

static bool hand(struct model_ringloop *to, int fd)
{
    pthread_mutex_lock(&to->handed_lock);
    bool room = !to->left && to->handed_count < RINGLOOP_HANDED_MAX;
    bool first = to->handed_count == 0;
    if (room) {
        to->handed[to->handed_count++] = fd;
        atomic_fetch_add_explicit(&to->live, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&to->handed_lock);
    if (room && first) /* it is woken for those that follow already */
        model_ringloop_wake(to);
    return room;
}

void model_ringdoors_take_handed(struct model_ringloop *loop)
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
    stats_add(&loop->worker.stats, STATS_connections_accepted, 1);
    struct model_ringloop *owner = loop->count > 1 ? choose_owner(loop) : loop;
    if (owner != loop && hand(owner, fd))
        return;
    atomic_fetch_add_explicit(&loop->live, 1, memory_order_relaxed);
    model_ringconnection_begin(loop, fd);
}

/* ---- accepting ---- */

static bool is_full(struct model_ringloop *loop)
{
    return live_of(loop) >= loop->connections_max;
}

static void fail(struct model_ringloop *loop, int error)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s", strerror(error));
    loop->listen_again_ns = loop->now_ns + PAUSE_NS;
}

void model_ringdoor_accepted(struct model_ringloop *loop, size_t number,
                             const struct io_uring_cqe *done)
{
    struct model_ringdoor *door = &loop->doors[number];
    if (!(done->flags & IORING_CQE_F_MORE))
        door->accepting = door->cancelling = false;
    if (done->res >= 0)
        place(loop, done->res);
    else if (done->res != -ECANCELED && !os_socket_lost_connection(-done->res))
        fail(loop, -done->res);
}

/* Accepts who waits, while there is room. Whether more may be waiting. */
static bool accept_some(struct model_ringloop *loop, int listener_fd)
{
    for (unsigned i = 0; i < TURN_ACCEPTS; i++) {
        if (is_full(choose_owner(loop)))
            return false;
        struct os_socket_address peer;
        int fd = os_socket_accept(listener_fd, &peer);
        if (fd < 0 && fd != -EAGAIN)
            fail(loop, -fd);
        if (fd < 0)
            return false;
        place(loop, fd);
    }
    return true;
}

void model_ringdoor_knocked(struct model_ringloop *loop, size_t number, int result)
{
    struct model_ringdoor *door = &loop->doors[number];
    door->watching = door->cancelling = false;
    if (result >= 0)
        (void)accept_some(loop, *listener_of(loop, number)); /* it is told again */
}

static void start(struct model_ringloop *loop, size_t number, bool accepting)
{
    struct model_ringdoor *door = &loop->doors[number];
    int fd = *listener_of(loop, number);
    struct io_uring_sqe *entry = model_ring_entry(
        &loop->ring, model_ringloop_about(accepting ? ABOUT_ACCEPT : ABOUT_LISTENER, number));
    if (accepting)
        io_uring_prep_multishot_accept(entry, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    else
        io_uring_prep_poll_add(entry, fd, POLLIN);
    door->accepting = accepting;
    door->watching = !accepting;
}

static void stop(struct model_ringloop *loop, size_t number)
{
    struct model_ringdoor *door = &loop->doors[number];
    if (door->cancelling)
        return;
    door->cancelling = true;
    model_ring_cancel(&loop->ring,
                      model_ringloop_about(door->accepting ? ABOUT_ACCEPT : ABOUT_LISTENER, number),
                      model_ringloop_about(ABOUT_NOTHING, 0));
}

void model_ringdoors_keep(struct model_ringloop *loop)
{
    if (loop->now_ns < loop->listen_again_ns)
        return;
    loop->listen_again_ns = 0;
    bool many = live_of(loop) + MANY_FROM <= loop->connections_max;
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        const struct model_ringdoor *door = &loop->doors[i];
        if (door->accepting && !many)
            stop(loop, i);
        else if (!door->accepting && !door->watching && *listener_of(loop, i) >= 0 &&
                 !is_full(choose_owner(loop)))
            start(loop, i, many);
    }
}

bool model_ringdoors_shut(struct model_ringloop *loop)
{
    bool shut = true;
    uint64_t until_ns = loop->now_ns + loop->server->drain_idle_ns;
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        const struct model_ringdoor *door = &loop->doors[i];
        int *fd = listener_of(loop, i);
        if (*fd < 0)
            continue;
        if (door->accepting || door->watching) {
            stop(loop, i);
            shut = false;
            continue;
        }
        while (accept_some(loop, *fd) && os_clock_now_ns() < until_ns)
            continue;
        os_file_close(*fd);
        *fd = -1;
    }
    return shut;
}
