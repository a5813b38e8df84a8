/* SPDX-License-Identifier: MIT */
#include "model/ringdoor.h"

#include "log/error.h"
#include "model/model.h"
#include "model/ringconnection.h"
#include "model/ringloop.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <string.h>

enum {
    /* With room for so many a loop has the kernel accept all who come; with less, one at a time,
     * for the kernel would also accept all who wait, who may be so many. */
    MANY_FROM = 4096
};
#define PAUSE_NS (OS_CLOCK_SECOND / 10)

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
    struct model_ringloop *owner = loop->count > 1 ? choose_owner(loop) : loop;
    if (owner != loop && hand(owner, fd))
        return;
    atomic_fetch_add_explicit(&loop->live, 1, memory_order_relaxed);
    model_ringconnection_begin(loop, fd);
}

/* ---- accepting ---- */

static unsigned room_in(struct model_ringloop *loop)
{
    unsigned live = live_of(loop);
    if (live < loop->connections_max)
        return loop->connections_max - live;
    struct model_ringloop *other = choose_owner(loop);
    return live_of(other) < other->connections_max ? 1 : 0;
}

void model_ringdoor_accepted(struct model_ringloop *loop, size_t number,
                             const struct io_uring_cqe *done)
{
    static struct log_error_limit limit;
    struct model_ringdoor *door = &loop->doors[number];
    if (!(done->flags & IORING_CQE_F_MORE))
        door->accepting = door->cancelling = false;
    if (done->res >= 0) {
        place(loop, done->res);
    } else if (done->res == -ECANCELED) {
        door->empty = door->last;
    } else if (!os_socket_lost_connection(-done->res)) {
        log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s",
                          strerror(-done->res));
        loop->listen_again_ns = loop->now_ns + PAUSE_NS;
        door->empty = door->last; /* a drain does not wait for better times */
    }
}

static void accept_from(struct model_ringloop *loop, size_t number, bool many)
{
    int fd = *listener_of(loop, number);
    struct model_ringdoor *door = &loop->doors[number];
    struct io_uring_sqe *entry =
        model_ring_entry(&loop->ring, model_ringloop_about(ABOUT_ACCEPT, number));
    if (many)
        io_uring_prep_multishot_accept(entry, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    else
        io_uring_prep_accept(entry, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    door->accepting = true;
    door->many = many;
}

static void stop_accepting(struct model_ringloop *loop, size_t number)
{
    struct model_ringdoor *door = &loop->doors[number];
    if (!door->accepting || door->cancelling)
        return;
    door->cancelling = true;
    model_ring_cancel(&loop->ring, model_ringloop_about(ABOUT_ACCEPT, number),
                      model_ringloop_about(ABOUT_NOTHING, 0));
}

void model_ringdoors_keep(struct model_ringloop *loop)
{
    if (loop->now_ns < loop->listen_again_ns)
        return;
    loop->listen_again_ns = 0;
    unsigned room = room_in(loop);
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        struct model_ringdoor *door = &loop->doors[i];
        if (door->accepting && (room == 0 || (door->many && room < MANY_FROM)))
            stop_accepting(loop, i);
        else if (!door->accepting && room > 0 && *listener_of(loop, i) >= 0)
            accept_from(loop, i, room >= MANY_FROM);
    }
}

/* An accept that is cancelled at once either takes one who waits, or nobody does. */
static void accept_rest(struct model_ringloop *loop, size_t number)
{
    loop->doors[number].last = true;
    accept_from(loop, number, false);
    stop_accepting(loop, number);
}

bool model_ringdoors_shut(struct model_ringloop *loop)
{
    bool shut = true;
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        struct model_ringdoor *door = &loop->doors[i];
        int *fd = listener_of(loop, i);
        if (*fd < 0)
            continue;
        if (door->accepting) {
            stop_accepting(loop, i);
        } else if (!door->empty && loop->drain_idle_ns != 0 && room_in(loop) > 0) {
            accept_rest(loop, i);
        } else {
            os_file_close(*fd);
            *fd = -1;
        }
        shut = shut && *fd < 0;
    }
    return shut;
}
