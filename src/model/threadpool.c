/* SPDX-License-Identifier: MIT
 *
 * The reactor's half of the pool; model/poolthread.c has the threads' half.
 *
 * Theory of operation. A connection has one owner at a time: the atomic `owner` in its element of
 * the reactor's table. Only the owner touches the session, changes the descriptor's events, or
 * closes it.
 *
 *   the reactor --queue--> POOL: in the queue, or served by a thread --close--> NULL
 *      ^                     |
 *      +----- release -------+   parked: epoll watches it with EPOLLONESHOT
 *
 * A new connection whose input has not arrived is parked by the reactor. With input it enters the
 * queue.
 *
 * To park a connection, a thread first arms the descriptor and then releases the connection. In the
 * other order, the reactor could close the connection at its deadline, and the thread would arm a
 * new connection with the same descriptor. So epoll may report a connection that the reactor does
 * not own yet. The reactor then changes `owner` from POOL to POOL_CALLED. The thread wants to
 * change `owner` from POOL to the reactor, finds POOL_CALLED, and serves the connection again. Both
 * compare and swap the same word, so one of them always sees the other: no event is lost, and none
 * is acted on twice.
 *
 * Stores that release a connection have release order, and loads before it is taken have acquire
 * order. The queue's mutex does the same for connections in the queue. An event may be reported
 * after its connection has changed owners. It costs one unnecessary turn: a thread that finds no
 * input parks the connection again.
 *
 * Only the reactor uses the timer, also while POOL owns the connection. It fires once a second, and
 * in a drain four times, and the reactor then acts on the connection if it is parked. With the
 * policy `sticky` the reactor then takes the oldest connection from the queue if it has waited for
 * header-timeout.
 *
 * With the policy `sticky` POOL owns a connection until it is closed. The thread waits in blocking
 * calls (model/pump.h), which the reactor ends by shutting the descriptor down. A lock prevents the
 * reactor from doing so after the thread has closed the descriptor, when its number may belong to
 * another connection.
 *
 * POOL is the address of model_poolthread_owner, POOL_CALLED that of model_poolthread_called.
 */
#include "model/threadpool.h"

#include "base/duration.h"
#include "log/error.h"
#include "model/connection.h"
#include "model/model.h"
#include "model/poolthread.h"
#include "model/transfer.h"
#include "os/file.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CHECK_NS       DURATION_SECOND
#define CHECK_DRAIN_NS (DURATION_SECOND / 4)

static bool is_parked(const struct model_reactor *r, const struct model_connection *c)
{
    return atomic_load_explicit(&c->owner, memory_order_acquire) == r && c->watched & EPOLLONESHOT;
}

static void report_full_queue(const struct model_threadpool *pool)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_WARNING,
                      "all %u threads are busy and %u connections wait for one (pool-queue): "
                      "answering 503",
                      pool->count, pool->server->pool_queue);
}

static void report_late_connection(const struct model_threadpool *pool)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_WARNING,
                      "all %u threads have a client, and a connection waited %.1f s for one "
                      "(header-timeout): answering 503",
                      pool->count,
                      (double)pool->server->shared->header_timeout_ns / (double)DURATION_SECOND);
}

/* Most clients connect before they send. A thread would be woken to find no input. The policy
 * `sticky` gives each connection a thread for good. */
static bool may_park_at_once(const struct model_threadpool *pool, int fd)
{
    char byte;
    return !pool->server->pool_sticky && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
}

/* The timer fires at the latest for the next check, and earlier for the deadline of a connection
 * that is parked. */
static void set_timer(struct model_reactor *r, struct model_connection *c, bool parked)
{
    uint64_t due_ns = r->loop.now_ns + (r->loop.draining ? CHECK_DRAIN_NS : CHECK_NS);
    if (parked && session_deadline_ns(&c->session) < due_ns)
        due_ns = session_deadline_ns(&c->session);
    model_wheel_add(&r->loop.wheel, &c->timer, due_ns);
}

static bool queue_accepted(struct model_reactor *r, int fd, struct session_origin origin)
{
    struct model_threadpool *pool = r->place;
    struct model_connection *c = &r->table[fd];
    CHECK(atomic_load_explicit(&c->owner, memory_order_acquire) == NULL);
    session_open(&c->session, &r->loop.thread, origin, r->loop.now_ns);
    set_timer(r, c, false);
    if (may_park_at_once(pool, fd) &&
        model_connection_watch(r, c, MODEL_EVENT_PLACED, MODEL_INPUT_EVENTS | EPOLLONESHOT)) {
        atomic_store_explicit(&c->owner, r, memory_order_relaxed);
        return true;
    }
    atomic_store_explicit(&c->owner, &model_poolthread_owner, memory_order_relaxed);
    c->queued_ns = r->loop.now_ns;
    if (model_queue_push(&pool->queue, &fd, 1) == 1) {
        stats_writer_add(&r->loop.thread.stats, STATS_queue_entered, 1);
        return true;
    }
    atomic_store_explicit(&c->owner, NULL, memory_order_relaxed);
    report_full_queue(pool);
    return false;
}

static void queue_ready(struct model_reactor *r)
{
    struct model_threadpool *pool = r->place;
    unsigned count = pool->ready_count;
    unsigned pushed = count > 0 ? model_queue_push(&pool->queue, pool->ready, count) : 0;
    pool->ready_count = 0;
    stats_writer_add(&r->loop.thread.stats, STATS_queue_entered, pushed);
    /* The threads go first where connections have to be ended: the kernel may let this thread use
     * its whole time slice, although it has woken another one. */
    if (pushed > 0 && model_wheel_next_ns(&r->loop.wheel) <= r->loop.now_ns)
        (void)sched_yield();
    if (pushed == count)
        return;
    report_full_queue(pool);
    for (unsigned i = pushed; i < count; i++) {
        struct model_connection *c = &r->table[pool->ready[i]];
        atomic_store_explicit(&c->owner, r, memory_order_relaxed);
        session_refuse(&c->session); /* the reactor finishes an answer that is under way */
        model_connection_resume(r, c);
    }
}

/* Has the session of a parked connection announce the drain, and parks the connection again. The
 * queue has no place for all connections at once, so the reactor's thread sends. False: the
 * connection is closed. */
static bool drain_parked(struct model_reactor *r, struct model_connection *c)
{
    const int fd = (int)(c - r->table);
    unsigned want = session_drain(&c->session, r->loop.now_ns);
    if (want == 0)
        return true;
    want = model_transfer_follow(&c->session, fd, want, LOOP_TURN_BYTES, r->loop.now_ns);
    const uint32_t events = model_connection_events(&c->session, want) | EPOLLONESHOT;
    if (want != SESSION_CLOSE && model_connection_watch(r, c, MODEL_EVENT_PLACED, events)) {
        set_timer(r, c, true); /* the client has to acknowledge the end in time */
        return true;
    }
    model_connection_close(r, c);
    return false;
}

/* True: a thread has not released the connection yet, and will serve it again. */
static bool call_back(struct model_connection *c)
{
    const void *owner = &model_poolthread_owner;
    return atomic_compare_exchange_strong_explicit(&c->owner, &owner, &model_poolthread_called,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void act_on_parked(struct model_reactor *r, int fd)
{
    struct model_threadpool *pool = r->place;
    struct model_connection *c = &r->table[fd];
    if (call_back(c) || !is_parked(r, c))
        return;
    atomic_store_explicit(&c->owner, &model_poolthread_owner, memory_order_relaxed);
    if (pool->ready_count == REACTOR_EVENTS) /* answers that became ready come beside the events */
        queue_ready(r);
    c->queued_ns = r->loop.now_ns;
    pool->ready[pool->ready_count++] = fd;
}

static bool is_late(const void *reactor, int fd)
{
    const struct model_reactor *r = reactor;
    return session_deadline_ns(&r->table[fd].session) <= r->loop.now_ns;
}

/* Sticky: the connection that has waited longest is answered 503 when the deadline of its head has
 * passed. One is enough at a time, because each connection in the queue has a timer. */
static void refuse_late_connection(struct model_reactor *r)
{
    struct model_threadpool *pool = r->place;
    int fd = model_queue_try_pop_due(&pool->queue, is_late, r);
    if (fd < 0)
        return;
    struct model_connection *c = &r->table[fd];
    struct session_origin origin = session_origin_of(&c->session);
    model_poolthread_count_wait(pool, &r->loop.thread, fd);
    report_late_connection(pool);
    c->session.peer.limited = false; /* the next session counts the address from now on */
    session_close(&c->session);
    atomic_store_explicit(&c->owner, NULL, memory_order_relaxed);
    model_connection_refuse(r, fd, origin);
}

/* The reactor itself finishes connections that no thread could take. The connection may be another
 * one by now: threads close connections, too. Then this costs one unnecessary turn. */
static void resume_parked(struct model_reactor *r, struct model_connection *c)
{
    if (atomic_load_explicit(&c->owner, memory_order_acquire) == r && !is_parked(r, c))
        model_connection_resume(r, c);
    else
        act_on_parked(r, (int)(c - r->table));
}

static void act_on_timer(struct model_reactor *r, struct model_wheel_node *timer)
{
    const struct model_threadpool *pool = r->place;
    struct model_connection *c = model_connection_of(timer);
    if (pool->server->pool_sticky)
        refuse_late_connection(r);
    const void *owner = atomic_load_explicit(&c->owner, memory_order_acquire);
    if (!owner)
        return;
    bool parked = is_parked(r, c);
    if (parked && r->loop.draining && !drain_parked(r, c)) /* parked while the drain began */
        return;
    if (owner == r && !parked) {
        model_connection_expire(r, timer);
        return;
    }
    if (parked && pool->closes_idle && session_idle(&c->session))
        model_connection_close(r, c);
    else if (parked && session_deadline_ns(&c->session) <= r->loop.now_ns)
        model_connection_expire(r, timer);
    else
        set_timer(r, c, parked);
}

static void drain_each_parked(struct model_reactor *r)
{
    struct model_wheel_node *next, *node = model_wheel_next(&r->loop.wheel, NULL);
    for (; node; node = next) {
        next = model_wheel_next(&r->loop.wheel, node);
        struct model_connection *c = model_connection_of(node);
        if (is_parked(r, c))
            (void)drain_parked(r, c);
        else
            set_timer(r, c, false); /* a thread has it, and may park it at any time */
    }
}

static void drain_pool(struct model_reactor *r)
{
    const struct model_threadpool *pool = r->place;
    drain_each_parked(r);
    model_pump_report_drain(pool->drain_fd);
}

static void end_pumps(struct model_threadpool *pool, bool (*end)(struct model_pump *pump))
{
    for (unsigned i = 0; i < pool->running; i++)
        model_poolthread_end(&pool->threads[i], end);
}

static void end_idle_pool_clients(struct model_reactor *r)
{
    struct model_threadpool *pool = r->place;
    drain_each_parked(r); /* those that a thread had when the drain began */
    pool->closes_idle = true;
    end_pumps(pool, model_pump_end_idle);
}

static void end_pool_clients(struct model_reactor *r)
{
    struct model_threadpool *pool = r->place;
    atomic_store(&pool->ending, true);
    end_pumps(pool, model_pump_end);
}

/* ---- making space ---- */

/* Parked connections, whose timers are in the wheel; and threads that wait for the next request of
 * a client of their own (sticky). */
static void search_idle_in_pool(struct model_loop *loop)
{
    struct model_threadpool *pool = ((struct model_reactor *)loop)->place;
    model_reactor_search_idle(loop);
    for (unsigned i = 0; i < pool->running; i++)
        model_idle_offer(loop, &pool->threads[i]);
}

/* NULL: a timer, and not a thread. */
static struct model_poolthread *pool_thread_of(struct model_loop *loop, void *who)
{
    struct model_threadpool *pool = ((struct model_reactor *)loop)->place;
    uintptr_t first = (uintptr_t)pool->threads, at = (uintptr_t)who;
    bool is_thread = at >= first && at < first + pool->running * sizeof(pool->threads[0]);
    return is_thread ? &pool->threads[(at - first) / sizeof(pool->threads[0])] : NULL;
}

static uint64_t pool_idle_since_ns(struct model_loop *loop, void *who)
{
    struct model_poolthread *t = pool_thread_of(loop, who);
    if (t)
        return model_poolthread_idle_since_ns(t);
    const struct model_connection *c = model_connection_of(who);
    return is_parked((struct model_reactor *)loop, c) ? session_idle_since_ns(&c->session)
                                                      : MODEL_IDLE_NEVER;
}

static void displace_from_pool(struct model_loop *loop, void *who)
{
    struct model_poolthread *t = pool_thread_of(loop, who);
    if (!t)
        model_reactor_displace(loop, who);
    else if (model_poolthread_displace(t))
        stats_writer_add(&loop->thread.stats, STATS_connections_displaced, 1);
}

static const struct model_idle_kind pool_idle = {
    .search = search_idle_in_pool,
    .since_ns = pool_idle_since_ns,
    .close = displace_from_pool,
};

static const struct model_placement pool_placement = {
    .idle = &pool_idle,
    .place = queue_accepted,
    .drain = drain_pool,
    .ready = act_on_parked,
    .resume = resume_parked,
    .turned = queue_ready,
    .due = act_on_timer,
    .close_idle = end_idle_pool_clients,
    .close_all = end_pool_clients,
};

/* ---- making and ending ---- */

/* Makes the queue and the memory of the threads, and starts none. */
static int new_pool(struct server *server, struct model_threadpool **ret_pool)
{
    size_t size = sizeof(struct model_threadpool) +
                  server->threads * sizeof(struct model_poolthread);
    struct model_threadpool *pool = aligned_alloc(CACHE_LINE, size);
    if (!pool)
        return -ENOMEM;
    memset(pool, 0, size);
    pool->server = server;
    pool->count = server->threads;
    *ret_pool = pool;
    pool->drain_fd = model_pump_open_drain();
    if (pool->drain_fd < 0)
        return pool->drain_fd;
    int rc = model_queue_init(&pool->queue, server->pool_queue);
    for (unsigned i = 0; i < pool->count && rc == 0; i++)
        rc = model_poolthread_init(&pool->threads[i], pool, i + 1);
    return rc;
}

/* After a failure some threads may run: free_pool ends them. */
static int start_pool_threads(struct model_threadpool *pool, struct model_reactor *r)
{
    pool->reactor = r;
    int rc = 0;
    while (pool->running < pool->count && rc == 0) {
        struct model_poolthread *t = &pool->threads[pool->running];
        session_thread_use_home(&t->thread, pool->server->pool_sticky ? NULL : &r->loop.home);
        rc = -pthread_create(&t->id, NULL, model_poolthread_serve, t);
        pool->running += rc == 0;
    }
    return rc;
}

/* Ends and joins the threads. The reactor has returned, but is not freed yet. */
static void free_pool(struct model_threadpool *pool)
{
    if (!pool)
        return;
    if (pool->queue.ring)
        model_queue_close(&pool->queue);
    atomic_store(&pool->ending, true); /* connections are left only when the reactor has failed */
    end_pumps(pool, model_pump_end);
    for (unsigned i = 0; i < pool->running; i++)
        pthread_join(pool->threads[i].id, NULL);
    for (unsigned i = 0; i < pool->count; i++)
        model_poolthread_done(&pool->threads[i]);
    if (pool->queue.ring)
        model_queue_done(&pool->queue);
    os_file_close(pool->drain_fd);
    free(pool);
}

int model_threadpool_serve(struct server *server)
{
    struct model_threadpool *pool = NULL;
    struct model_reactor *r = NULL;
    int rc = new_pool(server, &pool);
    if (rc == 0)
        rc = model_reactors_new(server, 1, &pool_placement, pool, &r);
    if (rc == 0)
        rc = start_pool_threads(pool, r);
    if (rc == 0)
        rc = model_reactor_serve(&r->loop);
    free_pool(pool);
    model_reactors_free(r);
    return rc;
}
