/* SPDX-License-Identifier: MIT
 *
 * A concurrency model is one function that moves bytes between descriptors and
 * sessions until it is told to stop. It gets a server, and knows no HTTP.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "ipc/fdpass.h"
#include "stats/segment.h"

#include <stdatomic.h>
#include <stdint.h>

struct session_shared;
struct server;

/* For the `threads` of a model, in place of a number. */
enum { MODEL_PER_CPU = 0, MODEL_DECIDES = -1 };

/* Connections of a worker that has a process or a thread for each: Linux has 32768 process ids
 * unless told otherwise, and 65530 mappings for a process (vm.max_map_count), of which a thread
 * takes two. */
enum { MODEL_PER_CONNECTION_MAX = 32000 };

struct model {
    const char *name;
    enum stats_accepts accepts;
    enum stats_serves serves;
    unsigned workers; /* processes, unless the configuration says otherwise */
    int threads;      /* in each, likewise */
    const char *sentence;
    const char *use; /* when to choose it */
    /* Serves until server->phase says stop and everything is drained. 0 or -errno. */
    int (*serve)(struct server *server);
};

/* The model to run where the configuration asks for `name`, or NULL when there is none of this
 * name. "auto" is the best for this machine, and a model that this machine cannot run gives way to
 * another; `why` then tells why, and is empty where the very model asked for runs. */
enum { MODEL_WHY_MAX = 160 };
const struct model *model_choose(struct span name, char why[MODEL_WHY_MAX]);

/* All of them, in the order of models.def; NULL name at the end. */
const struct model *model_all(void);

enum server_phase {
    SERVER_RUNNING,
    SERVER_DRAINING, /* no new connections; finish what has begun */
    SERVER_STOPPING  /* leave now */
};

/* What a model serves with; made by server/worker.c, one in a worker process. */
struct server {
    struct session_shared *shared;
    /* Listening sockets: `listener_sets` sets of `listener_count`, set after
     * set, one for each thread that accepts. The sets share addresses through
     * SO_REUSEPORT, except Unix sockets, which stand in the first set only and
     * are -1 in the others. A thread that drains closes its set and leaves -1. */
    int *listeners;
    unsigned listener_count;
    unsigned listener_sets;
    struct ipc_fdpass_receiver passed; /* where the master accepts: its connections arrive here */
    unsigned threads;         /* that accept, each; or that serve, beside the one that does */
    unsigned cache_readers;   /* the accepting threads' come first */
    unsigned connections_max; /* of the whole process */
    unsigned pool_queue;      /* connections that may wait for a thread; where few serve many */
    bool pool_sticky;         /* such a thread serves its client until it leaves */
    uint64_t drain_idle_ns;   /* how long a drain leaves connections between requests alone */
    uint64_t drain_timeout_ns;
    int signal_fd;     /* os/signal.h; read by one thread, for server_signal */
    _Atomic int phase; /* enum server_phase */
};

/* Acts on one signal number read from signal_fd: moves the phase on (drain, then
 * stop), reopens the logs. Any thread; returns whether the phase changed, in
 * which case the model wakes its other threads. In server/worker.c. */
bool server_signal(struct server *server, int signal);
