/* SPDX-License-Identifier: MIT
 *
 * The master's half of a model in which the master accepts: it passes each connection to the least
 * loaded worker, over a channel for each of them (ipc/fdpass.h), and never reads a byte of it.
 *
 * The master keeps both ends of every channel. What waits in the channel of a worker that dies is
 * served by the one that takes its place.
 *
 *     new                            before the first fork
 *     begin          in the master   connections are accepted
 *     keep           in the worker   everything but its own receiving end is closed
 *     up, down       in the master   worker number i has been started, has died
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

/* In a process that was forked for worker `index`: closes what is the master's and the other
 * workers', and frees `dispatch`. Gives the worker its receiving end. */
struct ipc_fdpass_receiver server_dispatch_keep(struct server_dispatch *dispatch, unsigned index);

/* Worker `index` has been started; it is gone. */
void server_dispatch_up(struct server_dispatch *dispatch, unsigned index);
void server_dispatch_down(struct server_dispatch *dispatch, unsigned index);

/* Accepts from `count` listeners from now on, as long as a worker is up. Takes `listeners`, an
 * array for free(), in any case; the sockets stay the caller's, and open until
 * server_dispatch_stop. 0 or -errno. */
MUST_USE int server_dispatch_begin(struct server_dispatch *dispatch, int *listeners,
                                   unsigned count);

/* Readable (poll, epoll) when there is something to do. */
int server_dispatch_fd(const struct server_dispatch *dispatch);

/* When act is due at the latest, monotonic; UINT64_MAX: no matter. */
uint64_t server_dispatch_due_ns(const struct server_dispatch *dispatch);

/* Accepts a bounded number of connections and passes them on. What cannot be passed on, for all
 * workers have as many as they can or their channels are full, is kept, and nothing else accepted,
 * until there is room. Out of descriptors, it pauses, and says so in the error log. */
void server_dispatch_act(struct server_dispatch *dispatch);

/* Accepts no more; with `last`, what waits in the listeners first, as far as the channels have
 * room. The listeners are not used any more; the workers find the end of their channels. */
void server_dispatch_stop(struct server_dispatch *dispatch, bool last);

/* Whether connections wait for worker `index`: after a stop, whether one that died is to be
 * replaced for their sake. */
bool server_dispatch_waits(const struct server_dispatch *dispatch, unsigned index);

struct server_dispatch_candidate {
    uint32_t load; /* connections that the worker has, or that are on their way to it */
    bool takes;    /* the worker runs, and its channel and its limit have space */
};

/* Which worker gets the next connection: the index of the least loaded one that takes any. Equals
 * take turns: the search begins at `from` and wraps around. -1: no worker takes any. Pure. */
int server_dispatch_choose(const struct server_dispatch_candidate *workers, unsigned count,
                           unsigned from);
