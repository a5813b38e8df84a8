/* SPDX-License-Identifier: MIT */
#include "model/poolthread.h"

#include "model/connection.h"
#include "model/model.h"
#include "model/transfer.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { TURN_READS = 16 }; /* recv for one connection before other connections get their turn */

const char model_poolthread_owner, model_poolthread_called;

/* ---- making and ending ---- */

int model_poolthread_init(struct model_poolthread *t, struct model_threadpool *pool, unsigned index)
{
    t->pool = pool;
    pthread_mutex_init(&t->lock, NULL);
    t->input = malloc(SESSION_READ_MAX);
    if (!t->input)
        return -ENOMEM;
    int rc = session_thread_start(&t->thread, pool->server->shared, index);
    t->started = true;
    session_thread_rest(&t->thread);
    return rc;
}

void model_poolthread_done(struct model_poolthread *t)
{
    if (t->started)
        session_thread_stop(&t->thread);
    free(t->input);
    if (t->pool)
        pthread_mutex_destroy(&t->lock);
}

/* ---- one connection ---- */

static void close_served(struct model_poolthread *t, struct model_connection *c, int fd)
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

static unsigned send_in_pool(const struct model_poolthread *t, struct session *s, int fd,
                             unsigned want)
{
    return model_transfer_follow(s, fd, want, LOOP_TURN_BYTES, t->thread.now_ns);
}

static void read_thread_clock(struct model_poolthread *t)
{
    session_thread_tick(&t->thread, os_clock_now_ns(), os_clock_wall_s());
}

/* Receives and sends until it would have to wait for what it returns, or the connection has had its
 * turn. */
static unsigned move_bytes(struct model_poolthread *t, struct session *s, int fd, unsigned want)
{
    want = send_in_pool(t, s, fd, want);
    size_t room;
    for (unsigned reads = 0; want & SESSION_READ && reads < TURN_READS; reads++) {
        if ((room = session_room(s)) == 0)
            return want;
        ssize_t len = recv(fd, t->input, room, MSG_DONTWAIT);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return want;
        if (len < 0) {
            session_failed(s, errno);
            return SESSION_CLOSE;
        }
        want = session_feed(s, span_of(t->input, (size_t)len), t->thread.now_ns);
        want = model_transfer_limit(s, fd, want, t->thread.now_ns);
        want = send_in_pool(t, s, fd, want);
        if (want & SESSION_READ && (size_t)len < room)
            return want; /* nothing more has arrived; epoll reports when it does */
    }
    return want;
}

/* Releases the connection to the reactor. False: epoll has reported it already, and the thread
 * serves it again. */
static bool release_connection(struct model_poolthread *t, struct model_connection *c)
{
    struct model_reactor *r = t->pool->reactor;
    session_move(&c->session, &r->loop.thread);
    const void *owner = &model_poolthread_owner;
    if (atomic_compare_exchange_strong_explicit(&c->owner, &owner, r, memory_order_release,
                                                memory_order_relaxed))
        return true;
    CHECK(owner == &model_poolthread_called);
    atomic_store_explicit(&c->owner, &model_poolthread_owner, memory_order_relaxed);
    read_thread_clock(t); /* other connections may have been served since the last reading */
    return false;
}

/* An answer was pending. If none is ready, epoll has perhaps reported the connection because it is
 * lost. Returns what the session wants now. */
static unsigned resume_pending(const struct model_poolthread *t, struct session *s, int fd)
{
    unsigned want = session_resume(s, t->thread.now_ns);
    if (want != SESSION_WAIT || !model_transfer_is_lost(fd))
        return want;
    session_failed(s, ECONNRESET);
    return SESSION_CLOSE;
}

static void serve_until_it_waits(struct model_poolthread *t, int fd)
{
    struct model_reactor *r = t->pool->reactor;
    struct model_connection *c = &r->table[fd];
    unsigned want = c->watched & EPOLLOUT ? SESSION_WRITE : SESSION_READ;
    do {
        session_move(&c->session, &t->thread);
        if (__builtin_expect(session_is_pending(&c->session), 0))
            want = resume_pending(t, &c->session, fd);
        want = move_bytes(t, &c->session, fd, want);
        uint32_t events = model_connection_events(&c->session, want) | EPOLLONESHOT;
        if (want == SESSION_CLOSE || atomic_load(&t->pool->ending) ||
            !model_connection_watch(r, c, MODEL_EVENT_PLACED, events)) {
            close_served(t, c, fd);
            return;
        }
    } while (!release_connection(t, c));
}

static void set_pumping(struct model_poolthread *t, bool pumping)
{
    pthread_mutex_lock(&t->lock);
    t->pumping = pumping;
    t->displaced = false;
    pthread_mutex_unlock(&t->lock);
}

static void serve_until_it_closes(struct model_poolthread *t, int fd)
{
    struct model_reactor *r = t->pool->reactor;
    struct model_connection *c = &r->table[fd];
    model_pump_init(&t->pump, fd, t->pool->drain_fd, t->pool->server->drain_idle_ns,
                    t->thread.now_ns);
    set_pumping(t, true); /* before reading `ending`: the thread that sets it then ends the pump */
    struct session_origin origin = session_origin_of(&c->session);
    if (!atomic_load(&t->pool->ending)) {
        c->session.peer.limited = false; /* the pump's session counts the address from now on */
        model_pump_serve(&t->pump, &t->thread, origin, t->input);
    }
    set_pumping(t, false);
    close_served(t, c, fd);
}

void model_poolthread_count_wait(const struct model_threadpool *pool,
                                 const struct session_thread *thread, int fd)
{
    const struct stats_writer *stats = &thread->stats;
    stats_writer_add(stats, STATS_queue_left, 1);
    if (stats_writer_visible(stats))
        stats_writer_record(stats, &stats->block->queue_wait,
                            thread->now_ns - pool->reactor->table[fd].queued_ns, 1);
}

/* A thread that sleeps must not keep other threads from reclaiming entries. */
static int next_descriptor(struct model_poolthread *t)
{
    struct model_queue *queue = &t->pool->queue;
    int fd = model_queue_try_pop(queue);
    if (fd == MODEL_QUEUE_EMPTY) {
        uint64_t until_ns = session_thread_due_ns(&t->thread);
        session_thread_rest(&t->thread);
        fd = model_queue_pop(queue, until_ns);
        session_thread_resume(&t->thread);
    }
    read_thread_clock(t);
    if (fd >= 0)
        model_poolthread_count_wait(t->pool, &t->thread, fd);
    return fd;
}

void *model_poolthread_serve(void *thread)
{
    struct model_poolthread *t = thread;
    session_thread_resume(&t->thread);
    read_thread_clock(t);
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

void model_poolthread_end(struct model_poolthread *t, bool (*end)(struct model_pump *pump))
{
    pthread_mutex_lock(&t->lock);
    if (t->pumping)
        (void)end(&t->pump);
    pthread_mutex_unlock(&t->lock);
}

uint64_t model_poolthread_idle_since_ns(struct model_poolthread *t)
{
    uint64_t since_ns = MODEL_IDLE_NEVER;
    pthread_mutex_lock(&t->lock);
    if (t->pumping && !t->displaced)
        since_ns = atomic_load_explicit(t->pump.idle_since_ns, memory_order_relaxed);
    pthread_mutex_unlock(&t->lock);
    return since_ns;
}

bool model_poolthread_displace(struct model_poolthread *t)
{
    pthread_mutex_lock(&t->lock);
    const bool displaced = t->pumping && model_pump_end_idle(&t->pump);
    t->displaced = displaced;
    pthread_mutex_unlock(&t->lock);
    return displaced;
}
