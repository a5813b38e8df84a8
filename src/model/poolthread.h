/* SPDX-License-Identifier: MIT
 *
 * One thread of the pool. It takes connections from the queue. It serves each until the connection
 * would wait, or with the policy `sticky` until the client closes it. model/threadpool.c has the
 * reactor's half, and defines who owns a connection at what time. Private to model/.
 */
#pragma once

#include "model/pump.h"
#include "model/queue.h"
#include "model/reactor.h"

#include <pthread.h>

/* Owners of a connection, beside the reactor. Only their addresses are used. */
extern const char model_poolthread_owner, model_poolthread_called;

struct model_poolthread {
    _Alignas(CACHE_LINE) struct model_threadpool *pool;
    pthread_t id;
    bool started; /* `thread` has been started */
    struct session_thread thread;
    char *input; /* SESSION_READ_MAX bytes */

    pthread_mutex_t lock; /* guards what is below */
    bool pumping;         /* the pump's descriptor is open */
    bool displaced;       /* its connection ends to make space */
    struct model_pump pump;
};

/* What the reactor and the threads share. The queue is written with each connection that it passes.
 * So it is on cache lines of its own, and the reactor's own list, too. */
struct model_threadpool {
    struct server *server;
    struct model_reactor *reactor;
    unsigned running;
    unsigned count;
    int drain_fd;        /* model/pump.h, for `sticky` */
    bool closes_idle;    /* the reactor's: a drain has waited long enough */
    _Atomic bool ending; /* every connection is closed, idle or not */
    _Alignas(CACHE_LINE) struct model_queue queue;
    _Alignas(CACHE_LINE) unsigned ready_count;
    int ready[REACTOR_EVENTS]; /* the reactor's: descriptors to queue at the end of its turn */
    struct model_poolthread threads[];
};

/* Prepares a zeroed thread, which will be reader `index` of the cache. 0 or -ENOMEM; in both cases
 * the caller calls model_poolthread_done. */
MUST_USE int model_poolthread_init(struct model_poolthread *t, struct model_threadpool *pool,
                                   unsigned index);

/* The thread has ended, or was never started. A zeroed one is allowed. */
void model_poolthread_done(struct model_poolthread *t);

/* The thread's function, for pthread_create. It returns when the queue is closed and empty. */
void *model_poolthread_serve(void *thread);

/* Counts that this thread, of the pool or the reactor's, took a connection from the queue. */
void model_poolthread_count_wait(const struct model_threadpool *pool,
                                 const struct session_thread *thread, int fd);

/* ---- in the reactor's thread ---- */

/* Ends the connection that the thread waits with (sticky), if it has one. */
void model_poolthread_end(struct model_poolthread *t, bool (*end)(struct model_pump *pump));

/* Since when the thread's client has been idle; MODEL_IDLE_NEVER: it has none, or is not idle. */
uint64_t model_poolthread_idle_since_ns(struct model_poolthread *t);

/* Ends the connection to make space for another. False: the thread has none that is idle. */
bool model_poolthread_displace(struct model_poolthread *t);
