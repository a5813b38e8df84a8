/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. A connection has one owner at a time: the atomic `owner` in its element of
 * the reactor's table. Only the owner touches the session, changes the descriptor's events, or
 * closes it.
 *
 *   the reactor --queue--> POOL: in the queue, or served by a thread --close--> NULL
 *      ^                     |
 *      +----- release -------+   parked: epoll watches it with EPOLLONESHOT
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
 * the reactor then acts on the connection if it is parked.
 *
 * With the policy `sticky` POOL owns a connection until it is closed. The thread waits in blocking
 * calls (model/pump.h), which the reactor ends by shutting the descriptor down. A lock prevents the
 * reactor from doing so after the thread has closed the descriptor, when its number may belong to
 * another connection.
 */
#include "model/threadpool.h"

#include "base/duration.h"
#include "log/error.h"
#include "model/connection.h"
#include "model/model.h"
#include "model/pump.h"
#include "model/queue.h"
#include "model/reactor.h"
#include "model/transfer.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum {
    TURN_READS = 16, /* calls of recv for one connection before other connections get their turn */
    PARKED_FOR_READING = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
    PARKED_FOR_WRITING = EPOLLOUT | EPOLLONESHOT
};

/* Their addresses are owners of connections, beside the reactor. */
static const char POOL, POOL_CALLED;

struct pool_thread {
    _Alignas(CACHE_LINE) struct model_threadpool *pool;
    pthread_t id;
    bool started; /* `thread` has been started */
    struct session_thread thread;
    char *input; /* SESSION_READ_MAX bytes */

    pthread_mutex_t lock; /* guards what is below */
    bool pumping;         /* the pump's descriptor is open */
    bool displaced;       /* its connection has to make space */
    struct model_pump pump;
};

struct model_threadpool {
    struct server *server;
    struct model_reactor *reactor;
    struct model_queue queue;
    bool closes_idle;    /* the reactor's: a drain has waited long enough */
    _Atomic bool ending; /* every connection is closed, idle or not */
    unsigned ready_count;
    int ready[REACTOR_EVENTS]; /* the reactor's: descriptors to queue at the end of its turn */
    unsigned running;
    unsigned count;
    struct pool_thread threads[];
};

/* ---- in a thread ---- */

static void close_served(struct pool_thread *t, struct model_connection *c, int fd)
{
    session_close(&c->session);
    stats_writer_add(&t->thread.stats, STATS_connections_closed, 1);
    c->watched = 0;
    /* Once the descriptor is closed, another connection may get its number, and with it the
     * element: the release pairs with the acquire in queue_accepted. */
    atomic_store_explicit(&c->owner, NULL, memory_order_release);
    os_file_close(fd);
    model_loop_ended(&t->pool->reactor->loop);
}

/* Sends, and half-closes, where the session wants it. */
static enum session_want send_in_pool(const struct pool_thread *t, struct session *s, int fd,
                                      enum session_want want)
{
    if (want == WANT_WRITE)
        want = model_transfer_send(s, fd, LOOP_TURN_BYTES, t->thread.now_ns);
    if (want != WANT_HALF_CLOSE)
        return want;
    (void)shutdown(fd, SHUT_WR); /* fails only when the peer is gone, and then recv does */
    return WANT_READ;
}

/* Receives and sends until it would have to wait for input (WANT_READ) or for the kernel to take
 * output (WANT_WRITE), or the connection has had its turn. */
static enum session_want move_bytes(struct pool_thread *t, struct session *s, int fd,
                                    enum session_want want)
{
    want = send_in_pool(t, s, fd, want);
    for (unsigned reads = 0; want == WANT_READ && reads < TURN_READS; reads++) {
        size_t room = session_room(s);
        ssize_t len = recv(fd, t->input, room, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return WANT_READ;
        if (len < 0) {
            session_failed(s, errno);
            return WANT_CLOSE;
        }
        want = session_feed(s, span_of(t->input, (size_t)len), t->thread.now_ns);
        want = send_in_pool(t, s, fd, want);
        if (want == WANT_READ && (size_t)len < room)
            return want; /* nothing more has arrived; epoll reports when it does */
    }
    return want;
}

/* Releases the connection to the reactor. False: epoll has reported it already, and the thread
 * serves it again. */
static bool release_connection(struct pool_thread *t, struct model_connection *c)
{
    struct model_reactor *r = t->pool->reactor;
    session_move(&c->session, &r->loop.thread);
    const void *owner = &POOL;
    if (atomic_compare_exchange_strong_explicit(&c->owner, &owner, r, memory_order_release,
                                                memory_order_relaxed))
        return true;
    CHECK(owner == &POOL_CALLED);
    atomic_store_explicit(&c->owner, &POOL, memory_order_relaxed);
    return false;
}

static void serve_until_it_waits(struct pool_thread *t, int fd)
{
    struct model_reactor *r = t->pool->reactor;
    struct model_connection *c = &r->table[fd];
    enum session_want want = c->watched & EPOLLOUT ? WANT_WRITE : WANT_READ;
    do {
        session_move(&c->session, &t->thread);
        want = move_bytes(t, &c->session, fd, want);
        uint32_t events = want == WANT_WRITE ? PARKED_FOR_WRITING : PARKED_FOR_READING;
        if (want == WANT_CLOSE || atomic_load(&t->pool->ending) ||
            !model_connection_watch(r, c, MODEL_EVENT_PLACED, events)) {
            close_served(t, c, fd);
            return;
        }
    } while (!release_connection(t, c));
}

static void set_pumping(struct pool_thread *t, bool pumping)
{
    pthread_mutex_lock(&t->lock);
    t->pumping = pumping;
    t->displaced = false;
    pthread_mutex_unlock(&t->lock);
}

static void serve_until_it_closes(struct pool_thread *t, int fd)
{
    struct model_reactor *r = t->pool->reactor;
    struct model_connection *c = &r->table[fd];
    model_pump_init(&t->pump, fd, t->pool->server->drain_idle_ns, t->thread.now_ns);
    set_pumping(t, true); /* before reading `ending`: the thread that sets it then ends the pump */
    if (!atomic_load(&t->pool->ending))
        model_pump_serve(&t->pump, &t->thread, session_origin_of(&c->session), t->input);
    set_pumping(t, false);
    close_served(t, c, fd);
}

static void count_queue_wait(const struct pool_thread *t, int fd)
{
    const struct stats_writer *stats = &t->thread.stats;
    stats_writer_add(stats, STATS_queue_left, 1);
    if (stats_writer_visible(stats))
        stats_writer_record(stats, &stats->block->queue_wait,
                            t->thread.now_ns - t->pool->reactor->table[fd].queued_ns, 1);
}

/* A thread that sleeps must not keep other threads from reclaiming entries. */
static int next_descriptor(struct pool_thread *t)
{
    struct model_queue *queue = &t->pool->queue;
    int fd = model_queue_try_pop(queue);
    if (fd == MODEL_QUEUE_EMPTY) {
        uint64_t until_ns = session_thread_due_ns(&t->thread);
        session_thread_rest(&t->thread);
        fd = model_queue_pop(queue, until_ns);
        session_thread_resume(&t->thread);
    }
    session_thread_tick(&t->thread, os_clock_now_ns(), os_clock_wall_s());
    if (fd >= 0)
        count_queue_wait(t, fd);
    return fd;
}

static void *serve_from_queue(void *thread)
{
    struct pool_thread *t = thread;
    session_thread_resume(&t->thread);
    session_thread_tick(&t->thread, os_clock_now_ns(), os_clock_wall_s());
    bool sticky = t->pool->server->pool_sticky;
    int fd;
    while ((fd = next_descriptor(t)) != MODEL_QUEUE_CLOSED)
        if (fd >= 0 && sticky)
            serve_until_it_closes(t, fd);
        else if (fd >= 0)
            serve_until_it_waits(t, fd);
    session_thread_rest(&t->thread);
    return NULL;
}

/* ---- in the reactor's thread ---- */

#define CHECK_NS DURATION_SECOND

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

static bool queue_accepted(struct model_reactor *r, int fd, struct session_origin origin)
{
    struct model_threadpool *pool = r->place;
    struct model_connection *c = &r->table[fd];
    CHECK(atomic_load_explicit(&c->owner, memory_order_acquire) == NULL);
    session_open(&c->session, &r->loop.thread, origin, r->loop.now_ns);
    atomic_store_explicit(&c->owner, &POOL, memory_order_relaxed);
    if (!pool->server->pool_sticky)
        model_wheel_add(&r->loop.wheel, &c->timer, r->loop.now_ns + CHECK_NS);
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

/* True: a thread has not released the connection yet, and will serve it again. */
static bool call_back(struct model_connection *c)
{
    const void *owner = &POOL;
    return atomic_compare_exchange_strong_explicit(&c->owner, &owner, &POOL_CALLED,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void act_on_parked(struct model_reactor *r, int fd)
{
    struct model_threadpool *pool = r->place;
    struct model_connection *c = &r->table[fd];
    if (call_back(c) || !is_parked(r, c))
        return;
    atomic_store_explicit(&c->owner, &POOL, memory_order_relaxed);
    CHECK(pool->ready_count < REACTOR_EVENTS);
    c->queued_ns = r->loop.now_ns;
    pool->ready[pool->ready_count++] = fd;
}

static void act_on_timer(struct model_reactor *r, struct model_wheel_node *timer)
{
    const struct model_threadpool *pool = r->place;
    struct model_connection *c = model_connection_of(timer);
    const void *owner = atomic_load_explicit(&c->owner, memory_order_acquire);
    if (!owner)
        return;
    bool parked = is_parked(r, c);
    if (owner == r && !parked) {
        model_connection_expire(r, timer);
        return;
    }
    uint64_t check_ns = r->loop.now_ns + CHECK_NS;
    uint64_t deadline_ns = parked ? session_deadline_ns(&c->session) : check_ns;
    if (parked && pool->closes_idle && session_idle(&c->session))
        model_connection_close(r, c);
    else if (deadline_ns <= r->loop.now_ns)
        model_connection_expire(r, timer);
    else
        model_wheel_add(&r->loop.wheel, timer, deadline_ns < check_ns ? deadline_ns : check_ns);
}

static void end_pumps(struct model_threadpool *pool, void (*end)(struct model_pump *pump))
{
    for (unsigned i = 0; i < pool->running; i++) {
        struct pool_thread *t = &pool->threads[i];
        pthread_mutex_lock(&t->lock);
        if (t->pumping)
            end(&t->pump);
        pthread_mutex_unlock(&t->lock);
    }
}

static void end_idle_pool_clients(struct model_reactor *r)
{
    struct model_threadpool *pool = r->place;
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
static struct pool_thread *pool_thread_of(struct model_loop *loop, void *who)
{
    struct model_threadpool *pool = ((struct model_reactor *)loop)->place;
    uintptr_t first = (uintptr_t)pool->threads, at = (uintptr_t)who;
    bool is_thread = at >= first && at < first + pool->running * sizeof(pool->threads[0]);
    return is_thread ? &pool->threads[(at - first) / sizeof(pool->threads[0])] : NULL;
}

static uint64_t sticky_idle_since_ns(struct pool_thread *t)
{
    uint64_t since_ns = MODEL_IDLE_NEVER;
    pthread_mutex_lock(&t->lock);
    if (t->pumping && !t->displaced)
        since_ns = atomic_load_explicit(t->pump.idle_since_ns, memory_order_relaxed);
    pthread_mutex_unlock(&t->lock);
    return since_ns;
}

static uint64_t pool_idle_since_ns(struct model_loop *loop, void *who)
{
    struct pool_thread *t = pool_thread_of(loop, who);
    if (t)
        return sticky_idle_since_ns(t);
    const struct model_connection *c = model_connection_of(who);
    return is_parked((struct model_reactor *)loop, c) ? session_idle_since_ns(&c->session)
                                                      : MODEL_IDLE_NEVER;
}

static void displace_from_pool(struct model_loop *loop, void *who)
{
    struct pool_thread *t = pool_thread_of(loop, who);
    if (!t) {
        model_reactor_displace(loop, who);
        return;
    }
    pthread_mutex_lock(&t->lock);
    if (t->pumping) {
        t->displaced = true;
        model_pump_end_idle(&t->pump);
        stats_writer_add(&loop->thread.stats, STATS_connections_displaced, 1);
    }
    pthread_mutex_unlock(&t->lock);
}

static const struct model_idle_kind pool_idle = {
    .search = search_idle_in_pool,
    .since_ns = pool_idle_since_ns,
    .close = displace_from_pool,
};

static const struct model_placement pool_placement = {
    .idle = &pool_idle,
    .place = queue_accepted,
    .ready = act_on_parked,
    .turned = queue_ready,
    .due = act_on_timer,
    .close_idle = end_idle_pool_clients,
    .close_all = end_pool_clients,
};

/* ---- making and ending ---- */

/* Makes the queue and the memory of the threads, and starts none. */
static int new_pool(struct server *server, struct model_threadpool **ret_pool)
{
    size_t size = sizeof(struct model_threadpool) + server->threads * sizeof(struct pool_thread);
    struct model_threadpool *pool = aligned_alloc(CACHE_LINE, size);
    if (!pool)
        return -ENOMEM;
    memset(pool, 0, size);
    pool->server = server;
    pool->count = server->threads;
    *ret_pool = pool;
    int rc = model_queue_init(&pool->queue, server->pool_queue);
    for (unsigned i = 0; i < pool->count && rc == 0; i++) {
        struct pool_thread *t = &pool->threads[i];
        t->pool = pool;
        pthread_mutex_init(&t->lock, NULL);
        t->input = malloc(SESSION_READ_MAX);
        t->started = t->input != NULL;
        rc = t->started ? session_thread_start(&t->thread, server->shared, i + 1) : -ENOMEM;
        if (t->started)
            session_thread_rest(&t->thread);
    }
    return rc;
}

/* After a failure some threads may run: free_pool ends them. */
static int start_pool_threads(struct model_threadpool *pool, struct model_reactor *r)
{
    pool->reactor = r;
    int rc = 0;
    while (pool->running < pool->count && rc == 0) {
        struct pool_thread *t = &pool->threads[pool->running];
        rc = -pthread_create(&t->id, NULL, serve_from_queue, t);
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
    for (unsigned i = 0; i < pool->count; i++) {
        struct pool_thread *t = &pool->threads[i];
        if (t->started)
            session_thread_stop(&t->thread);
        free(t->input);
        if (t->pool)
            pthread_mutex_destroy(&t->lock);
    }
    if (pool->queue.ring)
        model_queue_done(&pool->queue);
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
