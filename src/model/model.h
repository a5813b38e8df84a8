/* SPDX-License-Identifier: MIT
 *
 * A concurrency model is one function that moves bytes between descriptors and sessions until the
 * server stops. It knows no HTTP. docs/add-a-model.md says how to write one.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "ipc/fdpass.h"
#include "stats/segment.h"

#include <stdatomic.h>
#include <stdint.h>

struct model_ringloop;
struct session_shared;
struct server;

/* Values of a model's `threads` that are not a number. */
enum { MODEL_PER_CPU = 0, MODEL_DECIDES = -1 };

/* Connections of a worker, where each has a process or a thread. By default Linux has 32768 process
 * ids, and a process may have 65530 mappings (vm.max_map_count), of which a thread needs two. */
enum { MODEL_PER_CONNECTION_MAX = 32000 };

struct model {
    const char *name;
    enum stats_accepts accepts;
    enum stats_serves serves;
    unsigned workers; /* processes, unless the configuration sets another number */
    int threads;      /* in each worker, likewise */
    const char *sentence;
    const char *use; /* when to choose it */
    /* Serves until server->phase is not RUNNING and every connection has ended. 0 or -errno. */
    int (*serve)(struct server *server);
};

/* The model for this name, or NULL when no model has it. "auto" chooses the best model for this
 * machine, and another model replaces one that this machine cannot run. In both cases `why` gives
 * the reason. It is empty where the model has the name that was requested. */
enum { MODEL_WHY_MAX = 160 };
const struct model *model_choose(struct span name, char why[MODEL_WHY_MAX]);

/* Opens what the model needs and what the sandbox of a worker refuses later: its rings. Model
 * `uring` alone has some, and without them it serves as `percore`. Call it before `serve`, which
 * takes them. */
void model_prepare(const struct model *model, struct server *server);

/* Frees what model_prepare has opened, in a worker that does not serve. */
void model_discard(struct server *server);

/* All of them, in the order of models.def; NULL name at the end. */
const struct model *model_all(void);

enum server_phase {
    SERVER_RUNNING,
    SERVER_DRAINING, /* accept nothing new, and finish what is under way */
    SERVER_STOPPING  /* end all connections */
};

/* The arguments of a model. server/worker.c makes one in each worker process. */
struct server {
    struct session_shared *shared;
    /* Listening sockets: `listener_sets` sets of `listener_count` each, one set after the other.
     * Each thread that accepts has a set. The sets share addresses through SO_REUSEPORT. A Unix
     * socket is in the first set only, and -1 in the others. A thread that drains closes its set
     * and stores -1. */
    int *listeners;
    const bool *listener_tls; /* for each place in a set: it is for TLS. NULL: none is */
    unsigned listener_count;
    unsigned listener_sets;
    uint64_t dead_waiters_until_ns; /* until then the kernel may wake the ring of a dead process for
                                       a connection; UINT64_MAX: always */
    struct ipc_fdpass_receiver passed; /* where the master accepts: its connections arrive here */
    unsigned threads;         /* event loops; or serving threads, beside the one that accepts */
    unsigned cache_readers;   /* those of the accepting threads come first */
    unsigned connections_max; /* of the whole process */
    unsigned pool_queue;      /* connections that may wait for a thread of the pool */
    bool pool_sticky;         /* a thread of the pool serves a client until it closes */
    uint64_t drain_idle_ns;   /* how long a drain keeps connections between requests open */
    uint64_t drain_timeout_ns;
    struct model_ringloop *rings; /* of model_prepare, or NULL */
    int logs_fd;       /* the reading end of a mailbox (ipc/mailbox.h): logs opened again */
    int signal_fd;     /* os/signal.h; one thread reads it, for server_signal */
    _Atomic int phase; /* enum server_phase */
};

/* Continues the logs in the files that the master has passed. Any thread, and a signal handler. 0
 * or -errno; after an error the old files are kept. */
MUST_USE int model_take_logs(const struct server *server);

/* Acts on a signal that was read from signal_fd: changes the phase to drain or stop, or takes new
 * logs. True: the phase has changed, and the model wakes its other threads. Any thread. Defined in
 * server/worker.c. */
bool server_signal(struct server *server, int signal);
