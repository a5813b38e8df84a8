/* SPDX-License-Identifier: MIT
 *
 * Accepted connections on their way from one process to another: a descriptor in each message
 * (SCM_RIGHTS) of a pair of connected AF_UNIX sockets that keep messages whole (SOCK_SEQPACKET).
 *
 * What waits in the channel belongs to nobody but the kernel, and outlives both processes as long
 * as a third holds the receiving end. One process sends, one at a time receives, and what the
 * receiver has taken and ended stands in memory that both share, so that the sender knows how much
 * the receiver has to do, and a successor of the receiver can go on.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"

#include <stdatomic.h>
#include <stdint.h>

struct ipc_fdpass_channel {
    int sending_fd;   /* non-blocking and CLOEXEC, as is the other */
    int receiving_fd; /* -1 after either is closed */
};

/* What a receiver tells the sender; zero at first. Written by the receiving process only, but for
 * `tell`, or by the sending one while there is no receiver. The first two wrap around. */
struct ipc_fdpass_tally {
    _Alignas(CACHE_LINE) _Atomic uint32_t taken; /* the number of the last message received */
    _Atomic uint32_t ended; /* connections that are over, or were lost with their process */
    _Atomic uint32_t most;  /* connections that it can have; 0: any number */
    _Atomic bool tell;      /* the sender waits for the next one that ends */
};

/* The receiving end, as the receiver holds it. */
struct ipc_fdpass_receiver {
    int fd;                         /* -1: there is none, or there is no more to come */
    struct ipc_fdpass_tally *tally; /* NULL: nobody wants to know */
    int wake_fd;                    /* the sender's eventfd, for `tell` */
    size_t files_max;               /* descriptors that the process may have open */
    int last_fd; /* the number that the last one got, 0 at first: they are given from below */
};

/* 0 or -errno. */
MUST_USE int ipc_fdpass_open(struct ipc_fdpass_channel *channel);
void ipc_fdpass_close(struct ipc_fdpass_channel *channel);

/* Sends a copy of `fd`, which stays the caller's to close, with its peer, as message `number`: one
 * more than the last. 0; -EAGAIN when the channel is full, which it is with some 270 waiting;
 * -ETOOMANYREFS when the kernel lets this user have no more descriptors on their way; or another
 * -errno. Nothing is sent unless it is 0. */
MUST_USE int ipc_fdpass_send(const struct ipc_fdpass_channel *channel, int fd,
                             const struct os_socket_address *peer, uint32_t number);

/* No more will be sent: who receives finds the end behind what waits. All copies of the sending
 * end, in whatever process, are of no more use. */
void ipc_fdpass_end(const struct ipc_fdpass_channel *channel);

/* Whether anything but the end waits. */
bool ipc_fdpass_waits(const struct ipc_fdpass_channel *channel);

/* Receives a descriptor, CLOEXEC, the caller's to close, and counts it as taken. -EAGAIN when none
 * waits; -EPIPE at the end; -EMFILE when this process has no number free, and then the descriptor
 * goes on waiting; -EPROTO for a message that is none of ours or whose descriptor is withheld
 * (security modules do that): it is dropped, with whatever came, and counted as ended when the next
 * one is taken. */
MUST_USE int ipc_fdpass_receive(struct ipc_fdpass_receiver *receiver,
                                struct os_socket_address *ret_peer);

/* Counts a connection that was received as over, and wakes the sender if it waits for that. Any
 * thread. */
void ipc_fdpass_ended(const struct ipc_fdpass_receiver *receiver);

/* Connections sent and not over yet, where `number` was the last one sent. */
static inline uint32_t ipc_fdpass_load(const struct ipc_fdpass_tally *tally, uint32_t number)
{
    int32_t load = (int32_t)(number - atomic_load(&tally->ended));
    return load > 0 ? (uint32_t)load : 0;
}

/* The receiving process is dead: what it had taken is over. `number` is that of the last message
 * sent. */
void ipc_fdpass_bury(const struct ipc_fdpass_channel *channel, struct ipc_fdpass_tally *tally,
                     uint32_t number);
