/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. A connection has one owner at a time, told by the atomic
 * `owner` of its element of the loop's table. Only the owner touches the session,
 * names the descriptor to the kernel, or closes it.
 *
 *   the loop --queue--> CREW: in the queue, or in a thread's hands --close--> NULL
 *      ^                  |
 *      +---- release -----+   parked: watched by EPOLLONESHOT, nothing to do
 *
 * To park, a thread first arms the descriptor and only then gives the connection
 * up: the other way round, the loop could close it for its deadline, and the
 * thread would arm whatever has the number by then. So epoll may tell the loop of
 * a connection that is not its own yet. It then moves `owner` from CREW to CREW_CALLED,
 * and the thread, which wants to move it from CREW to the loop, finds it so and goes
 * on itself. One of the two always sees the other, since both compare and
 * swap the same word; so no event is lost, and none is acted on twice.
 *
 * The stores that give a connection away are releases and those that take it are
 * acquires; the queue's mutex does the same for what goes through the queue. What epoll
 * tells of a descriptor that has changed hands since is at worst a needless turn:
 * a thread that finds nothing to receive parks again.
 *
 * The timer is the loop's alone, whoever owns the connection: it looks after a
 * connection once a second, and acts on what is parked.
 *
 * With the policy `sticky` a connection is CREW's until it is closed, and the
 * thread waits in blocking calls (model/pump.h), which the loop ends by a shutdown
 * of the descriptor. A lock keeps it from meeting one that has been closed, and is
 * another's by now.
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
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum {
    TURN_BYTES = 2048 * 1024, /* sent to one connection before others get their turn */
    TURN_READS = 16,          /* and received from it, in calls */
    PARKED_FOR_READING = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT,
    PARKED_FOR_WRITING = EPOLLOUT | EPOLLONESHOT
};

/* Owners beside the loop: their addresses. */
static const char CREW, CREW_CALLED;

struct crew_thread {
    _Alignas(CACHE_LINE) struct model_threadpool *crew;
    pthread_t id;
    bool bound; /* the worker has been started */
    struct session_thread worker;
    char *input; /* SESSION_READ_MAX bytes */

    pthread_mutex_t lock; /* guards what is below */
    bool pumping;         /* the pump's descriptor is open, and may be shut down */
    struct model_pump pump;
};

struct model_threadpool {
    struct server *server;
    struct model_reactor *loop;
    struct model_queue queue;
    bool closes_idle;    /* the loop's: a drain has waited long enough */
    _Atomic bool ending; /* connections are closed, whatever they are at */
    unsigned ready_count;
    int ready[REACTOR_EVENTS]; /* the loop's: what it has been told of in this turn */
    unsigned running;
    unsigned count;
    struct crew_thread threads[];
};

/* ---- in a thread ---- */

static void finish(struct crew_thread *t, struct model_connection *c, int fd)
{
    session_close(&c->session);
    stats_add(&t->worker.stats, STATS_connections_closed, 1);
    c->watched = 0;
    /* The number may be another connection's the moment it is closed, and with it
     * the element: the release pairs with the acquire in `place`. */
    atomic_store_explicit(&c->owner, NULL, memory_order_release);
    os_file_close(fd);
    model_reactor_ended(t->crew->loop);
}

/* Receives and sends until the peer or the kernel has to do something first
 * (WANT_READ, WANT_WRITE), or the connection has had its share. */
static enum session_want move_bytes(struct crew_thread *t, struct session *s, int fd,
                                    enum session_want want)
{
    if (want == WANT_WRITE)
        want = model_transfer_send(s, fd, TURN_BYTES, t->worker.now_ns);
    for (unsigned reads = 0; want == WANT_READ && reads < TURN_READS; reads++) {
        size_t room = session_room(s);
        ssize_t len = recv(fd, t->input, room, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return WANT_READ;
        if (len < 0) {
            session_failed(s, errno);
            return WANT_CLOSE;
        }
        want = session_feed(s, span_of(t->input, (size_t)len), t->worker.now_ns);
        if (want == WANT_WRITE)
            want = model_transfer_send(s, fd, TURN_BYTES, t->worker.now_ns);
        if (want == WANT_HALF_CLOSE) {
            (void)shutdown(fd, SHUT_WR); /* fails only when the peer is gone: recv will tell */
            want = WANT_READ;
        } else if (want == WANT_READ && (size_t)len < room) {
            return want; /* that was all; epoll tells of more */
        }
    }
    return want;
}

/* Gives the connection to the loop, which is told by epoll when to go on; false
 * when it is already time to. */
static bool give_up(struct crew_thread *t, struct model_connection *c)
{
    struct model_reactor *loop = t->crew->loop;
    session_move(&c->session, &loop->worker);
    const void *owner = &CREW;
    if (atomic_compare_exchange_strong_explicit(&c->owner, &owner, loop, memory_order_release,
                                                memory_order_relaxed))
        return true;
    CHECK(owner == &CREW_CALLED);
    atomic_store_explicit(&c->owner, &CREW, memory_order_relaxed);
    return false;
}

static void serve_until_it_would_wait(struct crew_thread *t, int fd)
{
    struct model_reactor *loop = t->crew->loop;
    struct model_connection *c = &loop->table[fd];
    enum session_want want = c->watched & EPOLLOUT ? WANT_WRITE : WANT_READ;
    do {
        session_move(&c->session, &t->worker);
        want = move_bytes(t, &c->session, fd, want);
        uint32_t events = want == WANT_WRITE ? PARKED_FOR_WRITING : PARKED_FOR_READING;
        if (want == WANT_CLOSE || atomic_load(&t->crew->ending) ||
            !model_connection_watch(loop, c, MODEL_EVENT_PLACED, events)) {
            finish(t, c, fd);
            return;
        }
    } while (!give_up(t, c));
}

static void set_pumping(struct crew_thread *t, bool pumping)
{
    pthread_mutex_lock(&t->lock);
    t->pumping = pumping;
    pthread_mutex_unlock(&t->lock);
}

static void serve_until_it_leaves(struct crew_thread *t, int fd)
{
    struct model_reactor *loop = t->crew->loop;
    struct model_connection *c = &loop->table[fd];
    model_pump_init(&t->pump, fd, t->crew->server->drain_idle_ns);
    set_pumping(t, true); /* before it looks: whoever sets `ending` then ends the pump */
    if (!atomic_load(&t->crew->ending))
        model_pump_run(&t->pump, &t->worker, c->session.peer, t->input);
    set_pumping(t, false);
    finish(t, c, fd);
}

static void count_wait(const struct crew_thread *t, int fd)
{
    const struct stats_writer *stats = &t->worker.stats;
    stats_add(stats, STATS_queue_left, 1);
    if (stats_writer_visible(stats))
        stats_record(stats, &stats->block->queue_wait,
                     t->worker.now_ns - t->crew->loop->table[fd].queued_ns, 1);
}

/* A thread that sleeps must not keep others from freeing what left the cache. */
static int next_descriptor(struct crew_thread *t)
{
    struct model_queue *queue = &t->crew->queue;
    int fd = model_queue_try_pop(queue);
    if (fd == MODEL_QUEUE_EMPTY) {
        uint64_t until_ns = session_thread_due_ns(&t->worker);
        session_thread_rest(&t->worker);
        fd = model_queue_pop(queue, until_ns);
        session_thread_resume(&t->worker);
    }
    session_thread_tick(&t->worker, os_clock_now_ns(), os_clock_wall_s());
    if (fd >= 0)
        count_wait(t, fd);
    return fd;
}

static void *work(void *thread)
{
    struct crew_thread *t = thread;
    session_thread_resume(&t->worker);
    session_thread_tick(&t->worker, os_clock_now_ns(), os_clock_wall_s());
    bool sticky = t->crew->server->pool_sticky;
    int fd;
    while ((fd = next_descriptor(t)) != MODEL_QUEUE_CLOSED)
        if (fd >= 0 && sticky)
            serve_until_it_leaves(t, fd);
        else if (fd >= 0)
            serve_until_it_would_wait(t, fd);
    session_thread_rest(&t->worker);
    return NULL;
}

/* ---- in the loop ---- */

#define LOOK_AFTER_NS DURATION_SECOND

static bool is_parked(const struct model_reactor *r, const struct model_connection *c)
{
    return atomic_load_explicit(&c->owner, memory_order_acquire) == r && c->watched & EPOLLONESHOT;
}

static void tell_of_full_queue(const struct model_threadpool *crew)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_WARNING,
                      "all %u threads are busy and %u connections wait for one (pool-queue): "
                      "answering 503",
                      crew->count, crew->server->pool_queue);
}

static bool place(struct model_reactor *r, int fd, struct session_peer peer)
{
    struct model_threadpool *crew = r->place;
    struct model_connection *c = &r->table[fd];
    CHECK(atomic_load_explicit(&c->owner, memory_order_acquire) == NULL);
    session_open(&c->session, &r->worker, peer, r->now_ns);
    atomic_store_explicit(&c->owner, &CREW, memory_order_relaxed);
    if (!crew->server->pool_sticky)
        model_wheel_add(&r->wheel, &c->timer, r->now_ns + LOOK_AFTER_NS);
    c->queued_ns = r->now_ns;
    if (model_queue_push(&crew->queue, &fd, 1) == 1) {
        stats_add(&r->worker.stats, STATS_queue_entered, 1);
        return true;
    }
    atomic_store_explicit(&c->owner, NULL, memory_order_relaxed);
    tell_of_full_queue(crew);
    return false;
}

static void turned(struct model_reactor *r)
{
    struct model_threadpool *crew = r->place;
    unsigned count = crew->ready_count;
    unsigned pushed = count > 0 ? model_queue_push(&crew->queue, crew->ready, count) : 0;
    crew->ready_count = 0;
    stats_add(&r->worker.stats, STATS_queue_entered, pushed);
    if (pushed == count)
        return;
    tell_of_full_queue(crew);
    for (unsigned i = pushed; i < count; i++) {
        struct model_connection *c = &r->table[crew->ready[i]];
        atomic_store_explicit(&c->owner, r, memory_order_relaxed);
        session_refuse(&c->session); /* an answer under way is finished, by the loop */
        model_connection_resume(r, c);
    }
}

/* Whether a connection that a thread has not given up yet is called back. */
static bool call(struct model_connection *c)
{
    const void *owner = &CREW;
    return atomic_compare_exchange_strong_explicit(&c->owner, &owner, &CREW_CALLED,
                                                   memory_order_relaxed, memory_order_relaxed);
}

static void ready(struct model_reactor *r, int fd)
{
    struct model_threadpool *crew = r->place;
    struct model_connection *c = &r->table[fd];
    if (call(c) || !is_parked(r, c))
        return;
    atomic_store_explicit(&c->owner, &CREW, memory_order_relaxed);
    CHECK(crew->ready_count < REACTOR_EVENTS);
    c->queued_ns = r->now_ns;
    crew->ready[crew->ready_count++] = fd;
}

static void due(struct model_reactor *r, struct model_wheel_node *timer)
{
    const struct model_threadpool *crew = r->place;
    struct model_connection *c =
        (struct model_connection *)((char *)timer - offsetof(struct model_connection, timer));
    const void *owner = atomic_load_explicit(&c->owner, memory_order_acquire);
    if (!owner)
        return;
    bool parked = is_parked(r, c);
    if (owner == r && !parked) {
        model_connection_expire(r, timer);
        return;
    }
    uint64_t look_ns = r->now_ns + LOOK_AFTER_NS;
    uint64_t deadline_ns = parked ? session_deadline_ns(&c->session) : look_ns;
    if (parked && crew->closes_idle && session_idle(&c->session))
        model_connection_close(r, c);
    else if (deadline_ns <= r->now_ns)
        model_connection_expire(r, timer);
    else
        model_wheel_add(&r->wheel, timer, deadline_ns < look_ns ? deadline_ns : look_ns);
}

static void end_pumps(struct model_threadpool *crew, void (*end)(struct model_pump *pump))
{
    for (unsigned i = 0; i < crew->running; i++) {
        struct crew_thread *t = &crew->threads[i];
        pthread_mutex_lock(&t->lock);
        if (t->pumping)
            end(&t->pump);
        pthread_mutex_unlock(&t->lock);
    }
}

static void close_idle(struct model_reactor *r)
{
    struct model_threadpool *crew = r->place;
    crew->closes_idle = true;
    end_pumps(crew, model_pump_end_idle);
}

static void close_all(struct model_reactor *r)
{
    struct model_threadpool *crew = r->place;
    atomic_store(&crew->ending, true);
    end_pumps(crew, model_pump_end);
}

static const struct model_placement crew_placement = {
    .place = place,
    .ready = ready,
    .turned = turned,
    .due = due,
    .close_idle = close_idle,
    .close_all = close_all,
};

/* ---- making and ending ---- */

/* Makes the queue and what the threads need; none runs yet. */
static int new_crew(struct server *server, struct model_threadpool **ret_crew)
{
    size_t size = sizeof(struct model_threadpool) + server->threads * sizeof(struct crew_thread);
    struct model_threadpool *crew = aligned_alloc(CACHE_LINE, size);
    if (!crew)
        return -ENOMEM;
    memset(crew, 0, size);
    crew->server = server;
    crew->count = server->threads;
    *ret_crew = crew;
    int rc = model_queue_init(&crew->queue, server->pool_queue);
    for (unsigned i = 0; i < crew->count && rc == 0; i++) {
        struct crew_thread *t = &crew->threads[i];
        t->crew = crew;
        pthread_mutex_init(&t->lock, NULL);
        t->input = malloc(SESSION_READ_MAX);
        t->bound = t->input != NULL;
        rc = t->bound ? session_thread_start(&t->worker, server->shared, i + 1) : -ENOMEM;
        if (t->bound)
            session_thread_rest(&t->worker);
    }
    return rc;
}

/* Where it fails some may run, which free_crew ends. */
static int start_threads(struct model_threadpool *crew, struct model_reactor *loop)
{
    crew->loop = loop;
    int rc = 0;
    while (crew->running < crew->count && rc == 0) {
        struct crew_thread *t = &crew->threads[crew->running];
        rc = -pthread_create(&t->id, NULL, work, t);
        crew->running += rc == 0;
    }
    return rc;
}

/* Ends and joins the threads; the loop does not run any more, and is still there. */
static void free_crew(struct model_threadpool *crew)
{
    if (!crew)
        return;
    if (crew->queue.ring)
        model_queue_close(&crew->queue);
    atomic_store(&crew->ending, true); /* there are connections only when the loop has failed */
    end_pumps(crew, model_pump_end);
    for (unsigned i = 0; i < crew->running; i++)
        pthread_join(crew->threads[i].id, NULL);
    for (unsigned i = 0; i < crew->count; i++) {
        struct crew_thread *t = &crew->threads[i];
        if (t->bound)
            session_thread_stop(&t->worker);
        free(t->input);
        if (t->crew)
            pthread_mutex_destroy(&t->lock);
    }
    if (crew->queue.ring)
        model_queue_done(&crew->queue);
    free(crew);
}

int model_threadpool_run(struct server *server)
{
    struct model_threadpool *crew = NULL;
    struct model_reactor *loop = NULL;
    int rc = new_crew(server, &crew);
    if (rc == 0)
        rc = model_reactors_new(server, 1, &crew_placement, crew, &loop);
    if (rc == 0)
        rc = start_threads(crew, loop);
    if (rc == 0) {
        model_reactor_run(loop);
        rc = loop->status;
    }
    free_crew(crew);
    model_reactors_free(loop);
    return rc;
}
