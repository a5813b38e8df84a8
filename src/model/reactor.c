/* SPDX-License-Identifier: MIT
 *
 * One request's way through a reactor, on a connection that is open and idle:
 *
 *   1. epoll_wait returns the connection's descriptor, and up to 255 more (wait_for_epoll).
 *   2. model_loop_tick reads the clock, once for all events of the turn, and ends the session calls
 *      of the turn before: entries of the cache that it used may be reclaimed.
 *   3. act_on_event finds the connection in the table by its descriptor, and
 *      model_connection_event calls recv into `input`, a buffer that all connections of the thread
 *      share: an idle connection holds none.
 *   4. session_feed parses the request in place, decides the answer, and returns SESSION_WRITE.
 *      Where the head is not complete it copies what has arrived, and returns SESSION_READ.
 *   5. session_output lends the answer: pieces of memory, then perhaps a part of a file.
 *   6. model_transfer_send calls send, sendmsg or sendfile. Most answers leave in one call.
 *   7. session_sent learns how much left. After the last byte it counts the request, puts a line
 *      into the access log's buffer, and returns SESSION_READ, or SESSION_CLOSE.
 *   8. follow_want compares the session's deadline with the connection's timer. The timer mostly
 *      fires earlier than the deadline, and then the wheel stays as it is. The descriptor stays in
 *      the epoll set as it is, too.
 *   9. After the events of the turn, expire_timers acts on the timers that have fired, and
 *      offer_connections may hand a connection over to a reactor that has less work.
 *
 * So a request costs two system calls, recv and send, and a share of one epoll_wait. When the
 * kernel takes only a part of the answer, epoll reports when more can be sent, and step 5 follows.
 */
#include "model/reactor.h"

#include "base/duration.h"
#include "model/connection.h"
#include "model/model.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>

static struct model_reactor *reactor_of(struct model_loop *loop)
{
    return (struct model_reactor *)loop;
}

static int set_watched(const struct model_reactor *r, enum model_event kind, int fd, bool watched)
{
    struct epoll_event event = { .events = EPOLLIN,
                                 .data.u64 = model_reactor_event_data(kind, fd) };
    int how = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(r->epoll_fd, how, fd, &event) == 0 || errno == EEXIST || errno == ENOENT)
        return 0; /* EEXIST, ENOENT: it is in the set already, or was not */
    return -errno;
}

/* ---- accepting ---- */

/* Goes on after an error. Returns the first one. */
static int watch_listeners(const struct model_reactor *r, bool watched)
{
    const int *set = model_loop_listeners(&r->loop);
    int rc = 0;
    if (model_loop_is_passed(&r->loop))
        rc = set_watched(r, MODEL_EVENT_LISTENER, r->loop.server->passed.fd, watched);
    for (unsigned i = 0; i < r->loop.server->listener_count; i++) {
        int error = set[i] >= 0 ? set_watched(r, MODEL_EVENT_LISTENER, set[i], watched) : 0;
        rc = rc == 0 ? error : rc;
    }
    return rc;
}

/* A listener that stays in the epoll set would wake the loop again and again. */
static void stop_listening(struct model_loop *loop)
{
    struct model_reactor *r = reactor_of(loop);
    if (r->listening)
        (void)watch_listeners(r, false);
    r->listening = false;
}

/* After an error no listener is in the epoll set. */
static int start_listening(struct model_reactor *r)
{
    int rc = watch_listeners(r, true);
    r->listening = true;
    if (rc < 0)
        stop_listening(&r->loop);
    return rc;
}

/* Connections that still wait in the channel are for this worker's successor. */
static void end_passing(struct model_loop *loop)
{
    if (!model_loop_is_passed(loop))
        return;
    stop_listening(loop);
    os_file_close(loop->server->passed.fd);
    loop->server->passed.fd = -1;
}

static void listen_again_when_possible(struct model_reactor *r)
{
    struct model_loop *loop = &r->loop;
    if (r->listening || !model_loop_may_listen(loop))
        return;
    int rc = start_listening(r);
    if (rc < 0)
        model_loop_cannot_accept(loop, -rc);
}

static void begin_or_place(struct model_loop *loop, int fd, struct session_origin origin)
{
    struct model_reactor *r = reactor_of(loop);
    if (!r->placement)
        model_connection_begin(r, fd, origin);
    else if (!r->placement->place(r, fd, origin))
        model_connection_refuse(r, fd, origin);
}

static void adopt_moved(struct model_loop *loop, int fd)
{
    struct model_reactor *r = reactor_of(loop);
    struct model_connection *c = &r->table[fd];
    model_connection_adopt(r, fd);
    r->balance.received = true;
    bool idle_are_closed = loop->draining && loop->drain_idle_until_ns == 0;
    if (loop->draining && c->owner == r)
        model_connection_drain(r, c);
    if (idle_are_closed && c->owner == r && session_idle(&c->session))
        model_connection_close(r, c);
}

/* ---- draining ---- */

/* Connections that the kernel has already accepted are served. Those that arrive faster than they
 * can be placed are reset. The port is free once the other processes have closed their copies of
 * the listeners. */
static void close_listeners(struct model_reactor *r)
{
    struct model_loop *loop = &r->loop;
    int *set = model_loop_listeners(loop);
    bool listening = r->listening;
    uint64_t until_ns = loop->now_ns + loop->server->drain_idle_ns;
    for (unsigned i = 0; i < loop->server->listener_count && listening; i++)
        if (set[i] >= 0)
            model_loop_accept_rest(loop, set[i], until_ns);
    if (!model_loop_is_passed(loop))
        stop_listening(loop); /* other processes keep the socket open, and in the set */
    for (unsigned i = 0; i < loop->server->listener_count; i++) {
        os_file_close(set[i]);
        set[i] = -1;
    }
}

/* Every connection of a reactor has its timer in the wheel. */
static void drain_each_connection(struct model_reactor *r)
{
    struct model_wheel *wheel = &r->loop.wheel;
    struct model_wheel_node *next, *node = model_wheel_next(wheel, NULL);
    for (; node; node = next) {
        next = model_wheel_next(wheel, node);
        struct model_connection *c = model_connection_of(node);
        if (c->owner == r)
            model_connection_drain(r, c);
    }
}

static void drain_reactor(struct model_loop *loop, bool first_turn)
{
    struct model_reactor *r = reactor_of(loop);
    if (!first_turn)
        return;
    close_listeners(r);
    if (r->placement && r->placement->drain)
        r->placement->drain(r); /* parked connections first: they stay with the placement */
    drain_each_connection(r);
}

/* In a drain of the server the master passes what it has accepted, and then ends the channel. When
 * only this worker drains the channel does not end, and later connections are for its successor. */
static bool awaits_passed(const struct model_loop *loop)
{
    return model_loop_is_passed(loop) && loop->drain_idle_until_ns != 0;
}

static void close_each_connection(struct model_reactor *r, bool idle_only)
{
    struct model_wheel *wheel = &r->loop.wheel;
    struct model_wheel_node *next, *node = model_wheel_next(wheel, NULL);
    for (; node; node = next) {
        next = model_wheel_next(wheel, node);
        struct model_connection *c = model_connection_of(node);
        if (c->owner == r && (!idle_only || session_idle(&c->session)))
            model_connection_close(r, c);
    }
}

static void close_idle_connections(struct model_loop *loop)
{
    struct model_reactor *r = reactor_of(loop);
    if (r->placement && r->placement->close_idle)
        r->placement->close_idle(r); /* first: it may announce the end to parked connections */
    close_each_connection(r, true);
}

static void close_connections(struct model_loop *loop)
{
    struct model_reactor *r = reactor_of(loop);
    end_passing(loop);
    close_each_connection(r, false);
    if (r->placement && r->placement->close_all)
        r->placement->close_all(r);
}

/* ---- making space ---- */

void model_reactor_search_idle(struct model_loop *loop)
{
    struct model_wheel_node *node = NULL;
    while ((node = model_wheel_next(&loop->wheel, node)))
        model_idle_offer(loop, node);
}

static uint64_t idle_since_ns(struct model_loop *loop, void *timer)
{
    const struct model_connection *c = model_connection_of(timer);
    return c->owner == reactor_of(loop) ? session_idle_since_ns(&c->session) : MODEL_IDLE_NEVER;
}

void model_reactor_displace(struct model_loop *loop, void *timer)
{
    stats_writer_add(&loop->thread.stats, STATS_connections_displaced, 1);
    model_connection_close(reactor_of(loop), model_connection_of(timer));
}

static const struct model_idle_kind reactor_idle = {
    .search = model_reactor_search_idle,
    .since_ns = idle_since_ns,
    .close = model_reactor_displace,
};

static void pass_signal_on(struct model_loop *loop, int signal)
{
    struct model_reactor *r = reactor_of(loop);
    if (r->placement && r->placement->signal)
        r->placement->signal(r, signal);
}

static void resume_in_reactor(struct model_loop *loop, struct session *s)
{
    struct model_reactor *r = reactor_of(loop);
    struct model_connection *c = (struct model_connection *)s; /* its first member */
    if (r->placement && r->placement->resume)
        r->placement->resume(r, c);
    else
        model_connection_resume(r, c);
}

static const struct model_loop_kind reactor_kind = {
    .bytes = sizeof(struct model_reactor),
    .begin = begin_or_place,
    .adopt = adopt_moved,
    .resume = resume_in_reactor,
    .pause = stop_listening,
    .end_passing = end_passing,
    .drain = drain_reactor,
    .still_accepts = awaits_passed,
    .close_idle = close_idle_connections,
    .close_all = close_connections,
    .signal = pass_signal_on,
};

/* ---- making and ending ---- */

static int open_reactor(struct model_reactor *r)
{
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (r->epoll_fd < 0)
        return -errno;
    r->input = malloc(SESSION_READ_MAX);
    if (!r->input)
        return -ENOMEM;
    int rc = model_loop_open(&r->loop);
    if (rc == 0)
        rc = set_watched(r, MODEL_EVENT_WAKE, r->loop.wake_fd, true);
    if (rc == 0 && r->loop.index == 0)
        rc = set_watched(r, MODEL_EVENT_SIGNAL, r->loop.server->signal_fd, true);
    if (rc == 0)
        rc = start_listening(r);
    return rc;
}

int model_reactors_new(struct server *server, unsigned count,
                       const struct model_placement *placement, void *place,
                       struct model_reactor **ret_reactors)
{
    size_t table_size = os_process_raise_files();
    struct model_connection *table = mmap(NULL, table_size * sizeof(*table), PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return -errno;
    struct model_reactor *first =
        (struct model_reactor *)model_loops_new(server, count, &reactor_kind);
    if (!first) {
        munmap(table, table_size * sizeof(*table));
        return -ENOMEM;
    }
    *ret_reactors = first;
    for (unsigned i = 0; i < count; i++) {
        struct model_reactor *r = model_reactor_at(first, i);
        r->placement = placement;
        r->place = place;
        r->table = table;
        r->loop.files_max = table_size;
        r->loop.idle.kind = placement && placement->idle ? placement->idle : &reactor_idle;
        r->epoll_fd = -1;
        model_balance_init(&r->balance, os_clock_now_ns());
    }
    int rc = 0;
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = open_reactor(model_reactor_at(first, i));
    return rc;
}

void model_reactors_free(struct model_reactor *reactors)
{
    if (!reactors)
        return;
    munmap(reactors->table, reactors->loop.files_max * sizeof(*reactors->table));
    for (unsigned i = 0; i < reactors->loop.count; i++) {
        struct model_reactor *r = model_reactor_at(reactors, i);
        model_loop_close(&r->loop);
        os_file_close(r->epoll_fd);
        free(r->input);
    }
    free(reactors);
}

/* ---- the loop ---- */

static void act_on_event(struct model_reactor *r, const struct epoll_event *event)
{
    int fd = (int)(uint32_t)event->data.u64;
    switch (event->data.u64 >> 32) {
    case MODEL_EVENT_CONNECTION:
        model_connection_event(r, &r->table[fd], event->events);
        return;
    case MODEL_EVENT_PLACED:
        r->placement->ready(r, fd);
        return;
    case MODEL_EVENT_LISTENER:
        (void)model_loop_accept(&r->loop, fd); /* epoll reports again when more wait */
        return;
    case MODEL_EVENT_WAKE:
        model_loop_woken(&r->loop);
        return;
    case MODEL_EVENT_SIGNAL:
        model_loop_read_signals(&r->loop);
        return;
    default:
        CHECK(false);
    }
}

static int wait_ms(struct model_reactor *r)
{
    uint64_t now_ns = r->loop.now_ns, due_ns = model_loop_due_ns(&r->loop);
    bool turns = r->placement && r->placement->turn_ns > 0 && atomic_load(&r->loop.live) > 0;
    if (turns && due_ns > now_ns + r->placement->turn_ns)
        due_ns = now_ns + r->placement->turn_ns;
    return os_clock_wait_from_ms(due_ns, now_ns);
}

static int wait_for_epoll(struct model_reactor *r, struct epoll_event *events)
{
    int timeout_ms = wait_ms(r);
    model_loop_rest(&r->loop);
    if (r->loop.count > 1)
        model_balance_rest(&r->balance);
    int count = epoll_wait(r->epoll_fd, events, REACTOR_EVENTS, timeout_ms);
    int rc = count < 0 ? -errno : count;
    if (r->loop.count > 1)
        model_balance_resume(&r->balance);
    model_loop_resume(&r->loop);
    model_loop_tick(&r->loop);
    r->loop.thread.turn.reported = true;
    return rc == -EINTR ? 0 : rc;
}

static void expire_timers(struct model_reactor *r)
{
    struct model_wheel_node *node;
    for (unsigned i = 0;
         i < WHEEL_TURN_MAX && (node = model_wheel_expired(&r->loop.wheel, r->loop.now_ns)); i++)
        if (r->placement && r->placement->due)
            r->placement->due(r, node);
        else
            model_connection_expire(r, node);
}

static void offer_connections(struct model_reactor *r, const struct epoll_event *events, int count)
{
    if (r->loop.count == 1 || !model_balance_turn(r))
        return;
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 >> 32 == MODEL_EVENT_CONNECTION)
            model_balance_offer(r, &r->table[(uint32_t)events[i].data.u64]);
}

int model_reactor_serve(struct model_loop *loop)
{
    struct model_reactor *r = reactor_of(loop);
    struct epoll_event events[REACTOR_EVENTS];
    model_loop_tick(loop);
    while (model_loop_continues(loop)) {
        int count = wait_for_epoll(r, events);
        if (count < 0) {
            model_loop_fail(loop);
            return count;
        }
        for (int i = 0; i < count; i++)
            act_on_event(r, &events[i]);
        if (r->placement && r->placement->turned)
            r->placement->turned(r);
        expire_timers(r);
        offer_connections(r, events, count);
        listen_again_when_possible(r);
    }
    return 0;
}
