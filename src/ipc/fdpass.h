/* SPDX-License-Identifier: MIT
 *
 * Passes accepted connections from one process to another. Each message carries a descriptor
 * (SCM_RIGHTS) over a pair of connected AF_UNIX sockets that keep messages whole (SOCK_SEQPACKET).
 *
 * The kernel alone owns a connection in the channel. It outlives both processes while a third one
 * holds the receiving end. One process sends. One process at a time receives. A tally in memory
 * that both share counts the connections that the receiver has taken and ended. So the sender knows
 * the receiver's load, and a successor of the receiver can continue.
 */
#pragma once

#include "base/check.h"
#include "os/socket.h"

#include <stdatomic.h>
#include <stdint.h>

struct ipc_fdpass_channel {
    int sending_fd; /* both are non-blocking and CLOEXEC, and -1 after they are closed */
    int receiving_fd;
};

/* What a receiver reports to the sender; zero at first. Only the receiving process writes it, or
 * the sending process while there is no receiver. Both write `notify`. The first two wrap around.
 * The sender may trust the receiver less than itself: a receiver that reports wrong numbers gets
 * too many connections or too few, and nothing else happens. */
struct ipc_fdpass_tally {
    _Alignas(CACHE_LINE) _Atomic uint32_t taken; /* the number of the last message received */
    _Atomic uint32_t ended; /* connections that were closed, or lost with their process */
    _Atomic uint32_t most;  /* connections that the receiver can have; 0: any number */
    _Atomic bool notify;    /* the sender waits for the next connection that ends */
};

/* The receiving end, as the receiver holds it. */
struct ipc_fdpass_receiver {
    int fd;                         /* -1: no channel, or its end has arrived */
    struct ipc_fdpass_tally *tally; /* NULL: nothing is reported */
    int wake_fd;                    /* the sender's eventfd, for `notify` */
    size_t files_max;               /* descriptors that the process may have open */
    int last_fd; /* received last, 0 at first: the kernel gives the lowest free number */
};

/* What a message says about its connection. */
struct ipc_fdpass_origin {
    struct os_socket_address peer;
    bool tls; /* it came through a listener for TLS */
};

/* 0 or -errno. */
MUST_USE int ipc_fdpass_open(struct ipc_fdpass_channel *channel);
void ipc_fdpass_close(struct ipc_fdpass_channel *channel);

/* Sends a copy of `fd` and its origin as message `number`, which is one more than the last. The
 * caller still closes `fd`. Returns 0 or -errno. After an error nothing was sent. -EAGAIN: the
 * channel is full, with about 270 messages. -ETOOMANYREFS: this user has as many descriptors in
 * channels as the kernel allows. -EPIPE: the channel has ended, or the receiver has shut it. */
MUST_USE int ipc_fdpass_send(const struct ipc_fdpass_channel *channel, int fd,
                             const struct ipc_fdpass_origin *origin, uint32_t number);

/* Ends the channel: the receiver finds the end behind the messages that wait. No process can send
 * through its copy of the sending end any more. */
void ipc_fdpass_end(const struct ipc_fdpass_channel *channel);

/* Moves the messages that wait in `from`, which has no receiver, to `to`. A message is lost when
 * the kernel gives no number for its descriptor. */
void ipc_fdpass_move(const struct ipc_fdpass_channel *from, const struct ipc_fdpass_channel *to);

/* True: at least one message waits. */
bool ipc_fdpass_waits(const struct ipc_fdpass_channel *channel);

/* Receives a descriptor (CLOEXEC), which the caller closes, and counts it as taken. -EAGAIN when
 * none waits. -EPIPE at the end. -EMFILE when this process can open no more descriptors. The
 * message then stays in the channel. -EPROTO when the message has another form, or when a security
 * module withholds its descriptor. The message is then dropped, and counts as ended when the next
 * one is taken. */
MUST_USE int ipc_fdpass_receive(struct ipc_fdpass_receiver *receiver,
                                struct ipc_fdpass_origin *ret_origin);

/* Counts a received connection as ended, and wakes the sender if it waits for that. Any thread. */
void ipc_fdpass_ended(const struct ipc_fdpass_receiver *receiver);

/* Connections that were sent and have not ended, where `number` was sent last. */
static inline uint32_t ipc_fdpass_load(const struct ipc_fdpass_tally *tally, uint32_t number)
{
    int32_t load = (int32_t)(number - atomic_load(&tally->ended));
    return load > 0 ? (uint32_t)load : 0;
}

/* Counts the connections that the receiving process had taken as ended, after its death.
 * `number` was sent last. */
void ipc_fdpass_receiver_died(const struct ipc_fdpass_channel *channel,
                              struct ipc_fdpass_tally *tally, uint32_t number);
