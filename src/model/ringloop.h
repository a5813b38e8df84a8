/* SPDX-License-Identifier: MIT
 *
 * A loop over completions: one thread, one ring, the connections that it owns,
 * and the sessions on them. `uring` is one of these for each core.
 */
#pragma once

#include "base/check.h"
#include "model/ring.h"
#include "model/wheel.h"
#include "session/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct model_ringconnection;
struct server;

enum {
    RINGLOOP_COMPLETIONS = 256, /* acted on before the time is read again */
    RINGLOOP_HANDED_MAX = 256,  /* connections on their way to another loop */
};

/* What a completion is about: this below, the number of a connection or listener above. */
enum model_ringloop_about {
    ABOUT_NOTHING, /* a failure that does not matter */
    ABOUT_WAKE,
    ABOUT_SIGNAL,
    ABOUT_ACCEPT,
    ABOUT_RECEIVE,
    ABOUT_SEND,
    ABOUT_ROOM, /* to send into */
};

enum { RINGLOOP_ABOUT_BITS = 8 };

static inline uint64_t model_ringloop_about(enum model_ringloop_about about, size_t number)
{
    return (uint64_t)number << RINGLOOP_ABOUT_BITS | (uint64_t)about;
}

/* A listener: what the ring does about it. */
struct model_ringloop_door {
    bool waiting;    /* an accept is under way */
    bool many;       /* that goes on after the first */
    bool cancelling; /* and is to end */
    bool empty;      /* a drain has let in who waited */
};

/* Written by its own thread, but for the parts that say otherwise. */
struct model_ringloop {
    struct server *server;
    struct model_ringloop *all; /* the process's loops, an array */
    unsigned count;
    unsigned index; /* among them */
    unsigned connections_max;
    int wake_fd; /* an eventfd; written by any thread */
    struct model_ring ring;
    struct model_ringconnection *table;
    unsigned table_size;
    unsigned table_used; /* from here on never used yet */
    unsigned free;       /* the number of one that is free; table_size: none */
    struct model_ringloop_door *doors;
    bool retiring;            /* the phase is not RUNNING any more, and this loop knows */
    uint64_t listen_again_ns; /* after running out of descriptors; 0: not waiting */
    uint64_t drain_idle_ns;   /* until when connections between requests are left alone */
    uint64_t drain_end_ns;
    uint64_t now_ns;
    struct session_worker worker;
    struct model_wheel wheel;

    /* Written by any thread. */
    _Alignas(CACHE_LINE) _Atomic unsigned live; /* connections owned, or on their way here */
    pthread_mutex_t handed_lock;                /* guards what is below */
    bool left;                                  /* it takes no more */
    unsigned handed_count;
    int handed[RINGLOOP_HANDED_MAX];
};

/* Makes the `count` loops of a server. 0 or -errno, with what failed in *ret_call and *ret_loops
 * for model_ringloops_free. */
MUST_USE int model_ringloops_new(struct server *server, unsigned count,
                                 struct model_ringloop **ret_loops, const char **ret_call);
void model_ringloops_free(struct model_ringloop *loops);

/* Has every loop look at the server's phase. Any thread. */
void model_ringloops_wake(const struct model_ringloop *loops);

/* Runs one loop until the server stops and its connections are gone. 0 or -errno. */
MUST_USE int model_ringloop_run(struct model_ringloop *loop);
