/* SPDX-License-Identifier: MIT
 *
 * A concurrency model is one function that moves bytes between descriptors and
 * sessions until it is told to stop. It gets a server, and knows no HTTP.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdatomic.h>
#include <stdint.h>

struct session_shared;
struct server;

enum model_threads { MODEL_THREADS_ONE, MODEL_THREADS_MANY };

struct model {
    const char *name;
    enum model_threads threads; /* that accept and serve in one worker process */
    const char *sentence;
    const char *use; /* when to choose it */
    /* Serves until server->phase says stop and everything is drained. 0 or -errno. */
    int (*run)(struct server *server);
};

/* The model of this name ("auto" resolves to the best for the machine), or NULL. */
const struct model *model_find(struct span name);

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
    unsigned threads;
    unsigned connections_max; /* of the whole process */
    uint64_t drain_timeout_ns;
    int signal_fd;     /* os/signal.h; read by one thread, which passes what it reads to
                                 server_signal */
    _Atomic int phase; /* enum server_phase */
};

/* Acts on one signal number read from signal_fd: moves the phase on (drain, then
 * stop), reopens the logs. Any thread; returns whether the phase changed, in
 * which case the model wakes its other threads. In server/worker.c. */
bool server_signal(struct server *server, int signal);
