/* SPDX-License-Identifier: MIT */
#include "model/reactor.h"

#include "base/duration.h"
#include "model/connection.h"
#include "model/intake.h"
#include "model/model.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLOSE_AGAIN_NS \
    UINT64_C(100000000) /* connections that are placed may take a moment to end */

static int watch(const struct model_reactor *r, enum model_event kind, int fd, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.u64 = model_event_data(kind, fd) };
    return epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* ---- making and ending ---- */

static int open_reactor(struct model_reactor *r)
{
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->epoll_fd < 0 || r->wake_fd < 0)
        return -errno;
    r->input = malloc(SESSION_READ_MAX);
    if (!r->input)
        return -ENOMEM;
    int rc = session_thread_start(&r->worker, r->server->shared, r->index);
    if (rc == 0)
        rc = watch(r, MODEL_EVENT_WAKE, r->wake_fd, EPOLLIN);
    if (rc == 0 && r->index == 0)
        rc = watch(r, MODEL_EVENT_SIGNAL, r->server->signal_fd, EPOLLIN);
    if (rc == 0)
        rc = model_intake_listen(r, true);
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
    struct model_reactor *all = aligned_alloc(CACHE_LINE, count * sizeof(*all));
    if (!all) {
        munmap(table, table_size * sizeof(*table));
        return -ENOMEM;
    }
    memset(all, 0, count * sizeof(*all));
    *ret_reactors = all;
    for (unsigned i = 0; i < count; i++) {
        all[i] = (struct model_reactor){
            .server = server,
            .placement = placement,
            .place = place,
            .all = all,
            .count = count,
            .index = i,
            .connections_max = (server->connections_max + count - 1) / count,
            .table = table,
            .table_size = table_size,
            .epoll_fd = -1,
            .wake_fd = -1,
        };
        pthread_mutex_init(&all[i].handed_lock, NULL);
        model_wheel_init(&all[i].wheel, os_clock_now_ns());
        model_balance_init(&all[i].balance, os_clock_now_ns());
    }
    CHECK(count <= server->listener_sets || server->intake.fd >= 0);
    int rc = 0;
    for (unsigned i = 0; i < count && rc == 0; i++)
        rc = open_reactor(&all[i]);
    return rc;
}

void model_reactors_free(struct model_reactor *reactors)
{
    if (!reactors)
        return;
    munmap(reactors->table, reactors->table_size * sizeof(*reactors->table));
    for (unsigned i = 0; i < reactors->count; i++) {
        struct model_reactor *r = &reactors[i];
        if (r->worker.reader)
            session_thread_stop(&r->worker);
        os_file_close(r->epoll_fd);
        os_file_close(r->wake_fd);
        free(r->input);
        pthread_mutex_destroy(&r->handed_lock);
    }
    free(reactors);
}

/* ---- accepting ---- */

static void wake(const struct model_reactor *reactor)
{
    uint64_t one = 1;
    (void)!write(reactor->wake_fd, &one, sizeof(one)); /* full means that it is awake already */
}

void model_reactors_wake(const struct model_reactor *reactors)
{
    for (unsigned i = 0; i < reactors->count; i++)
        wake(&reactors[i]);
}

void model_reactor_has_room(struct model_reactor *reactor)
{
    if (reactor->count > 1)
        model_reactors_wake(reactor->all);
}

void model_reactor_ended(struct model_reactor *reactor)
{
    ipc_fdpass_ended(&reactor->server->intake);
    unsigned live = atomic_fetch_sub_explicit(&reactor->live, 1, memory_order_release);
    bool drained = live == 1 && atomic_load(&reactor->server->phase) != SERVER_RUNNING;
    if (drained || live >= reactor->connections_max)
        wake(reactor);
}

static bool is_full(const struct model_reactor *r)
{
    return atomic_load_explicit(&r->live, memory_order_relaxed) >= r->connections_max;
}

/* The reactor that a new connection goes to: the emptiest, unless this one is nearly
 * as empty and has room, for handing over costs more than a little unevenness. */
static struct model_reactor *choose_owner(struct model_reactor *r)
{
    struct model_reactor *emptiest = r;
    unsigned least = atomic_load_explicit(&r->live, memory_order_relaxed);
    unsigned mine = least;
    for (unsigned i = 0; i < r->count; i++) {
        unsigned live = atomic_load_explicit(&r->all[i].live, memory_order_relaxed);
        if (live < least) {
            least = live;
            emptiest = &r->all[i];
        }
    }
    unsigned margin = least / 20 > 2 ? least / 20 : 2;
    return mine > least + margin || mine >= r->connections_max ? emptiest : r;
}

bool model_reactor_hand(struct model_reactor *to, struct model_handed handed)
{
    pthread_mutex_lock(&to->handed_lock);
    bool room = !to->left && to->handed_count < REACTOR_HANDED_MAX;
    bool first = to->handed_count == 0;
    if (room) {
        to->handed[to->handed_count++] = handed;
        atomic_fetch_add_explicit(&to->live, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&to->handed_lock);
    if (room && first) /* it is woken for those that follow already */
        wake(to);
    return room;
}

static void take_moved(struct model_reactor *r, int fd)
{
    model_connection_adopt(r, fd);
    r->balance.received = true;
    struct model_connection *c = &r->table[fd];
    if (r->retiring && r->drain_idle_ns == 0 && c->owner == r) /* it has been waited for */
        model_connection_close(r, c);
}

static void take_handed(struct model_reactor *r)
{
    struct model_handed handed[REACTOR_HANDED_MAX];
    pthread_mutex_lock(&r->handed_lock);
    unsigned count = r->handed_count;
    memcpy(handed, r->handed, count * sizeof(handed[0]));
    r->handed_count = 0;
    pthread_mutex_unlock(&r->handed_lock);
    for (unsigned i = 0; i < count; i++)
        if (handed[i].moved)
            take_moved(r, handed[i].fd);
        else
            model_connection_begin(r, handed[i].fd, handed[i].peer);
}

/* Until a connection ends, and not before `again_ns`. */
static void stop_listening(struct model_reactor *r, uint64_t again_ns)
{
    if (r->listening)
        (void)model_intake_listen(r,
                                  false); /* a listener that stays in is only woken for in vain */
    r->listen_again_ns = again_ns;
}

/* Accepts a good number of connections; whether more may be waiting. */
static bool accept_from(struct model_reactor *r, int listener_fd)
{
    for (unsigned i = 0; i < REACTOR_ACCEPTS; i++) {
        if (is_full(choose_owner(r))) {
            stop_listening(r, 0);
            return false;
        }
        struct session_peer peer;
        int fd = model_connection_accept(r, listener_fd, &peer);
        if (fd == -EAGAIN)
            return false;
        if (fd == -EPIPE) {
            model_intake_end_passing(r);
            return false;
        }
        if (fd < 0) {
            stop_listening(r, r->now_ns + DURATION_SECOND / 10);
            return false;
        }
        struct model_reactor *owner = r->count > 1 ? choose_owner(r) : r;
        if (owner != r && model_reactor_hand(owner, (struct model_handed){ fd, false, peer }))
            continue;
        atomic_fetch_add_explicit(&r->live, 1, memory_order_relaxed);
        if (!r->placement)
            model_connection_begin(r, fd, peer);
        else if (!r->placement->place(r, fd, peer))
            model_connection_refuse(r, fd, peer);
    }
    return true;
}

/* A drain goes on until the master has passed what it had accepted. */
static bool may_listen(const struct model_reactor *r)
{
    return !r->retiring || model_intake_is_passed(r);
}

static void listen_again_when_possible(struct model_reactor *r)
{
    if (r->listening || !may_listen(r) || r->now_ns < r->listen_again_ns)
        return;
    r->listen_again_ns = 0;
    if (!is_full(choose_owner(r)))
        (void)model_intake_listen(r,
                                  true); /* fails for want of memory only: tried again next turn */
}

/* ---- draining ---- */

static void close_idle(struct model_reactor *r)
{
    for (size_t fd = 0; fd < r->table_size; fd++) {
        struct model_connection *c = &r->table[fd];
        if (c->owner == r && session_idle(&c->session))
            model_connection_close(r, c);
    }
    if (r->placement && r->placement->close_idle)
        r->placement->close_idle(r);
    r->drain_idle_ns = 0;
}

/* Whom the kernel has let in is served, but for those who come faster than they
 * can be placed; from then on it lets nobody in, once the other processes have
 * let go of the listeners too. */
static void close_listeners(struct model_reactor *r)
{
    const int *set = model_intake_listeners(r);
    bool listening = r->listening;
    uint64_t until_ns = r->now_ns + r->server->drain_idle_ns;
    for (unsigned i = 0; i < r->server->listener_count && listening; i++)
        while (set[i] >= 0 && accept_from(r, set[i]) && os_clock_now_ns() < until_ns)
            continue;
    model_intake_close_listeners(r);
}

static void begin_drain(struct model_reactor *r)
{
    close_listeners(r);
    r->retiring = true;
    r->drain_idle_ns = r->now_ns + r->server->drain_idle_ns;
    r->drain_end_ns = r->now_ns + r->server->drain_timeout_ns;
    if (r->placement && r->placement->drain)
        r->placement->drain(r);
}

static void close_all(struct model_reactor *r)
{
    for (size_t fd = 0; fd < r->table_size; fd++)
        if (r->table[fd].owner == r)
            model_connection_close(r, &r->table[fd]);
    if (r->placement && r->placement->close_all)
        r->placement->close_all(r);
    r->drain_end_ns = r->now_ns + CLOSE_AGAIN_NS;
}

/* Nothing is left to do, or it cannot be done, and nobody hands anything over any more. */
static bool leave(struct model_reactor *r)
{
    pthread_mutex_lock(&r->handed_lock);
    r->left = r->status < 0 || atomic_load_explicit(&r->live, memory_order_acquire) == 0;
    bool left = r->left;
    pthread_mutex_unlock(&r->handed_lock);
    if (left && r->index > 0)
        wake(&r->all[0]);
    return left;
}

static bool has_left(struct model_reactor *r)
{
    pthread_mutex_lock(&r->handed_lock);
    bool left = r->left;
    pthread_mutex_unlock(&r->handed_lock);
    return left;
}

/* The first loop stays until the others have left: it reads the signals. */
static bool others_are_there(const struct model_reactor *r)
{
    for (unsigned i = 1; r->index == 0 && i < r->count; i++)
        if (!has_left(&r->all[i]))
            return true;
    return false;
}

/* In a drain the master passes what it has accepted, and then the channel ends. But where only
 * this worker was told to drain, it does not: what comes later is for its successor. */
static bool awaits_end(const struct model_reactor *r)
{
    return model_intake_is_passed(r) && r->drain_idle_ns != 0;
}

/* Whether the loop goes on. */
static bool follow_phase(struct model_reactor *r)
{
    int phase = atomic_load_explicit(&r->server->phase, memory_order_acquire);
    if (phase == SERVER_RUNNING)
        return true;
    if (!r->retiring)
        begin_drain(r);
    if (r->drain_idle_ns != 0 && r->now_ns >= r->drain_idle_ns)
        close_idle(r);
    if (phase == SERVER_STOPPING || r->now_ns >= r->drain_end_ns) {
        model_intake_end_passing(r);
        close_all(r);
    }
    return awaits_end(r) || others_are_there(r) || !leave(r);
}

/* ---- the loop ---- */

static void read_signals(struct model_reactor *r)
{
    int signal;
    while ((signal = os_signal_read(r->server->signal_fd)) > 0) {
        if (server_signal(r->server, signal))
            model_reactors_wake(r->all);
        if (r->placement && r->placement->signal)
            r->placement->signal(r, signal);
    }
}

static void empty_wake(const struct model_reactor *r)
{
    uint64_t count;
    (void)!read(r->wake_fd, &count, sizeof(count)); /* what it was woken for is looked up anyway */
}

static void act_on(struct model_reactor *r, const struct epoll_event *event)
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
        (void)accept_from(r, fd); /* epoll tells again */
        return;
    case MODEL_EVENT_WAKE:
        empty_wake(r);
        take_handed(r);
        return;
    case MODEL_EVENT_SIGNAL:
        read_signals(r);
        return;
    default:
        CHECK(false);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int wait_ms(struct model_reactor *r)
{
    uint64_t due = earlier(model_wheel_next_ns(&r->wheel), session_thread_due_ns(&r->worker));
    if (!r->listening && may_listen(r))
        due = earlier(due, r->listen_again_ns ? r->listen_again_ns : UINT64_MAX);
    if (r->retiring)
        due = earlier(due, r->drain_idle_ns ? r->drain_idle_ns : r->drain_end_ns);
    if (r->placement && r->placement->turn_ns > 0 && atomic_load(&r->live) > 0)
        due = earlier(due, r->now_ns + r->placement->turn_ns);
    if (due == UINT64_MAX)
        return -1;
    uint64_t now = r->now_ns;
    return due <= now ? 0 : (int)((due - now) / DURATION_MS + 1);
}

/* A thread that sleeps must not keep others from freeing what left the cache. */
static int wait_for_events(struct model_reactor *r, struct epoll_event *events)
{
    bool others = r->server->cache_readers > 1;
    int timeout_ms = wait_ms(r);
    if (others) {
        session_thread_rest(&r->worker);
        model_balance_rest(&r->balance);
    }
    int count = epoll_wait(r->epoll_fd, events, REACTOR_EVENTS, timeout_ms);
    int rc = count < 0 ? -errno : count;
    if (others) {
        model_balance_resume(&r->balance);
        session_thread_resume(&r->worker);
    }
    r->now_ns = os_clock_now_ns();
    session_thread_tick(&r->worker, r->now_ns, os_clock_wall_s());
    return rc == -EINTR ? 0 : rc;
}

static void expire(struct model_reactor *r)
{
    struct model_wheel_node *node;
    while ((node = model_wheel_expired(&r->wheel, r->now_ns)))
        if (r->placement && r->placement->due)
            r->placement->due(r, node);
        else
            model_connection_expire(r, node);
}

static void balance(struct model_reactor *r, const struct epoll_event *events, int count)
{
    if (r->count == 1 || !model_balance_turn(r))
        return;
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 >> 32 == MODEL_EVENT_CONNECTION)
            model_balance_offer(r, &r->table[(uint32_t)events[i].data.u64]);
}

void model_reactor_run(struct model_reactor *r)
{
    struct epoll_event events[REACTOR_EVENTS];
    r->now_ns = os_clock_now_ns();
    session_thread_tick(&r->worker, r->now_ns, os_clock_wall_s());
    while (follow_phase(r)) {
        int count = wait_for_events(r, events);
        if (count < 0) {
            r->status = count;
            (void)leave(r);
            return;
        }
        for (int i = 0; i < count; i++)
            act_on(r, &events[i]);
        if (r->placement && r->placement->turned)
            r->placement->turned(r);
        expire(r);
        balance(r, events, count);
        listen_again_when_possible(r);
    }
}
