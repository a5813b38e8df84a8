/* SPDX-License-Identifier: MIT
 *
 * The master's half of a model whose master accepts. The master passes each connection to the least
 * loaded worker, over one channel for each worker (ipc/fdpass.h). It reads no byte of a connection.
 *
 * The master keeps both ends of every channel. When a worker dies, its successor serves the
 * connections that wait in the channel.
 *
 *     new                            before the first fork
 *     begin          in the master   connections are accepted
 *     keep           in the worker   closes everything but the worker's receiving end
 *     up, down       in the master   worker number i has started, has died
 *     act            in the master   when `fd` is readable, or `due_ns` has passed
 *     stop           in the master   no more is accepted, and the workers read to the end
 *
 * Threads: the master has one.
 */
#pragma once

#include "base/check.h"
#include "ipc/fdpass.h"

#include <stdbool.h>
#include <stdint.h>

struct server_dispatch;

/* Makes a channel for each of `workers`. 0 or -errno. */
MUST_USE int server_dispatch_new(unsigned workers, struct server_dispatch **ret_dispatch);
void server_dispatch_free(struct server_dispatch *dispatch);

/* In the process of worker `index`, after the fork: closes what belongs to the master and to the
 * other workers, and frees `dispatch`. Gives the receiving end. */
struct ipc_fdpass_receiver server_dispatch_keep(struct server_dispatch *dispatch, unsigned index);

/* Worker `index` has started; it has ended. */
void server_dispatch_up(struct server_dispatch *dispatch, unsigned index);
void server_dispatch_down(struct server_dispatch *dispatch, unsigned index);

/* Accepts from `count` listeners from now on, while a worker is up. Takes `listeners`, an array for
 * free(), in any case. The sockets stay the caller's, and open until server_dispatch_stop. Borrows
 * `tls` until then: which of the listeners are for TLS; NULL: none is. 0 or -errno. */
MUST_USE int server_dispatch_begin(struct server_dispatch *dispatch, int *listeners,
                                   const bool *tls, size_t count);

/* Readable (poll, epoll) when server_dispatch_act has something to do. */
int server_dispatch_fd(const struct server_dispatch *dispatch);

/* The latest time for the next server_dispatch_act, monotonic; UINT64_MAX: never. */
uint64_t server_dispatch_due_ns(const struct server_dispatch *dispatch);

/* Accepts a bounded number of connections and passes them to workers. When all workers are at their
 * limit, or their channels are full, one accepted connection is held and no other is accepted until
 * a worker has space. Without free descriptors it pauses, and logs an error. */
void server_dispatch_act(struct server_dispatch *dispatch);

/* Stops accepting. With `last` it first accepts the listeners' backlogs, as far as the channels
 * have space. The listeners are not used any more; the workers find the end of their channels. */
void server_dispatch_stop(struct server_dispatch *dispatch, bool last);

/* Whether connections wait in the channel of worker `index`. After a stop, a worker that died is
 * replaced if they do. */
bool server_dispatch_waits(const struct server_dispatch *dispatch, unsigned index);

struct server_dispatch_candidate {
    uint32_t load; /* connections that the worker has, or that are on their way to it */
    bool takes;    /* the worker runs, and its channel and its limit have space */
};

/* Which worker gets the next connection: the index of the least loaded one that takes any. Equals
 * take turns: the search begins at `from` and wraps around. -1: no worker takes any. Pure. */
int server_dispatch_choose(const struct server_dispatch_candidate *workers, unsigned count,
                           unsigned from);
