/* SPDX-License-Identifier: MIT
 *
 * A loop over completions: one thread, one ring, the connections that it owns,
 * and the sessions on them. `uring` is one of these for each core.
 *
 * For a request on a warm connection the loop makes no system call of its own: a
 * send is submitted with the wait that ends the turn, and what has been asked to
 * receive again and again is not asked anew.
 */
#pragma once

#include "base/check.h"
#include "model/ring.h"
#include "model/ringdoor.h"
#include "model/wheel.h"
#include "session/thread.h"

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
    ABOUT_NOTHING, /* a cancel that came too late */
    ABOUT_WAKE,
    ABOUT_SIGNAL,
    ABOUT_LISTENER,
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

/* Written by its own thread, but for the parts that say otherwise. */
struct model_ringloop {
    struct server *server;
    struct model_ringloop *all; /* the process's loops, an array */
    unsigned count;
    unsigned index; /* among them */
    unsigned connections_max;
    int wake_fd; /* an eventfd; written by any thread */
    struct model_ring ring;
    struct model_ringdoor *doors;       /* the server's listeners of this loop */
    struct model_ringconnection *table; /* by number */
    unsigned table_size;
    unsigned table_used;      /* the first that no connection has had yet */
    unsigned free;            /* the number of one that is free again; table_size: none */
    bool retiring;            /* the phase is not RUNNING any more, and this loop knows */
    uint64_t listen_again_ns; /* after running out of descriptors; 0: not waiting */
    uint64_t drain_idle_ns;   /* until when connections between requests are left alone */
    uint64_t drain_end_ns;
    uint64_t now_ns;
    struct session_thread worker;
    struct model_wheel wheel;

    /* Written by any thread. */
    _Alignas(CACHE_LINE) _Atomic unsigned live; /* connections owned, or on their way here */
    pthread_mutex_t handed_lock;                /* guards what is below */
    bool left;                                  /* it takes no more */
    unsigned handed_count;
    int handed[RINGLOOP_HANDED_MAX];
};

/* Has a loop look at the server's phase, and at what was handed to it. Any thread. */
void model_ringloop_wake(const struct model_ringloop *loop);

/* The same for all loops of the process. */
void model_ringloop_wake_all(const struct model_ringloop *loop);

/* Runs one loop until the server stops and its connections are gone. 0 or -errno. */
MUST_USE int model_ringloop_run(struct model_ringloop *loop);
