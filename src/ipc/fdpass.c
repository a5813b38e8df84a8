/* SPDX-License-Identifier: MIT
 *
 * A receiver may die after it takes a message and before it counts it. The message numbers correct
 * that: the next receiver finds a number missing and counts it as ended, because its connection
 * died with the process.
 *
 * A descriptor that arrives when no number is free is lost, and its connection is reset. So when
 * few numbers are left, the receiver first peeks at a message. That gives a copy of the descriptor,
 * or fails and leaves the message in its place.
 */
#include "ipc/fdpass.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Numbers that other threads may take between two messages. */
enum { NUMBERS_SPARE = 64 };

struct message_head {
    uint32_t number; /* first: ipc_fdpass_receiver_died reads it alone */
    uint32_t tls;    /* 1 or 0 */
};

struct message {
    struct message_head head;
    struct os_socket_address peer;
};

union control {
    struct cmsghdr first;
    char space[CMSG_SPACE(sizeof(int))];
};

int ipc_fdpass_open(struct ipc_fdpass_channel *channel)
{
    int ends[2];
    *channel = (struct ipc_fdpass_channel){ -1, -1 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -errno;
    *channel = (struct ipc_fdpass_channel){ ends[0], ends[1] };
    return 0;
}

void ipc_fdpass_close(struct ipc_fdpass_channel *channel)
{
    os_file_close(channel->sending_fd);
    os_file_close(channel->receiving_fd);
    *channel = (struct ipc_fdpass_channel){ -1, -1 };
}

int ipc_fdpass_send(const struct ipc_fdpass_channel *channel, int fd,
                    const struct ipc_fdpass_origin *origin, uint32_t number)
{
    const struct os_socket_address *peer = &origin->peer;
    struct message_head head = { number, origin->tls };
    /* The address comes last, with its real length: most are much shorter than the longest. */
    socklen_t len = peer->len < sizeof(peer->storage) ? peer->len : sizeof(peer->storage);
    struct iovec parts[] = {
        { &head, sizeof(head) },
        { (void *)(uintptr_t)&peer->storage, len },
    };
    union control control = { 0 };
    struct msghdr header = {
        .msg_iov = parts,
        .msg_iovlen = 2,
        .msg_control = &control,
        .msg_controllen = sizeof(control.space),
    };
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    ssize_t sent;
    do
        sent = sendmsg(channel->sending_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

void ipc_fdpass_end(const struct ipc_fdpass_channel *channel)
{
    (void)shutdown(channel->sending_fd, SHUT_WR); /* fails only where it is shut down already */
}

bool ipc_fdpass_waits(const struct ipc_fdpass_channel *channel)
{
    char byte;
    return recv(channel->receiving_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* ---- receiving ---- */

/* The descriptor of a message, or -1. The control buffer has space for one, and the kernel closes
 * those that do not fit. */
static int descriptor_of(struct msghdr *header)
{
    int fd = -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(header);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    return fd;
}

/* Reads a message. Returns its descriptor, -EPROTO when it has none, or the error of recvmsg. */
static int read_message(int receiving_fd, int flags, struct message *ret_message)
{
    struct iovec parts[] = {
        { &ret_message->head, sizeof(ret_message->head) },
        { &ret_message->peer.storage, sizeof(ret_message->peer.storage) },
    };
    union control control = { 0 };
    struct msghdr header = {
        .msg_iov = parts,
        .msg_iovlen = 2,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(sizeof(int)), /* with padding there would be space for two */
    };
    ssize_t len;
    do
        len = recvmsg(receiving_fd, &header, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    if (len <= 0)
        return len < 0 ? -errno : -EPIPE;
    int fd = descriptor_of(&header);
    size_t head_len = sizeof(ret_message->head);
    bool whole = (size_t)len >= head_len && ret_message->head.tls <= 1;
    if (fd >= 0 && whole && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        ret_message->peer.len = (socklen_t)((size_t)len - head_len);
        return fd;
    }
    os_file_close(fd);
    return -EPROTO;
}

void ipc_fdpass_move(const struct ipc_fdpass_channel *from, const struct ipc_fdpass_channel *to)
{
    struct message message;
    int fd;
    while ((fd = read_message(from->receiving_fd, 0, &message)) >= 0 || fd == -EPROTO) {
        if (fd < 0)
            continue; /* no number was free for its descriptor: this connection is lost */
        const struct ipc_fdpass_origin origin = { message.peer, message.head.tls != 0 };
        (void)!ipc_fdpass_send(to, fd, &origin, message.head.number); /* it has as much space */
        os_file_close(fd);
    }
}

static bool numbers_run_short(const struct ipc_fdpass_receiver *receiver)
{
    return (size_t)receiver->last_fd + NUMBERS_SPARE >= receiver->files_max;
}

/* First takes a copy of the descriptor, then removes the message. */
static int read_carefully(int receiving_fd, struct message *ret_message)
{
    int fd = read_message(receiving_fd, MSG_PEEK, ret_message);
    if (fd == -EPROTO) {
        int number = fcntl(receiving_fd, F_DUPFD_CLOEXEC, 0);
        if (number < 0)
            return -EMFILE;
        os_file_close(number);
        return read_message(receiving_fd, 0, ret_message);
    }
    char byte;
    if (fd >= 0)
        (void)!recv(receiving_fd, &byte, sizeof(byte), MSG_DONTWAIT);
    return fd;
}

int ipc_fdpass_receive(struct ipc_fdpass_receiver *receiver, struct ipc_fdpass_origin *ret_origin)
{
    struct message message;
    int fd = numbers_run_short(receiver) ? read_carefully(receiver->fd, &message)
                                         : read_message(receiver->fd, 0, &message);
    if (fd < 0)
        return fd;
    struct ipc_fdpass_tally *tally = receiver->tally;
    uint32_t before = atomic_load_explicit(&tally->taken, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->ended, message.head.number - before - 1,
                              memory_order_relaxed);
    atomic_store_explicit(&tally->taken, message.head.number, memory_order_relaxed);
    receiver->last_fd = fd;
    ret_origin->peer = message.peer;
    ret_origin->tls = message.head.tls != 0;
    return fd;
}

/* The sender sets `notify` and then reads `ended`. This function writes and reads in the other
 * order, so that one of the two sees the other. */
void ipc_fdpass_ended(const struct ipc_fdpass_receiver *receiver)
{
    struct ipc_fdpass_tally *tally = receiver->tally;
    if (!tally)
        return;
    atomic_fetch_add(&tally->ended, 1);
    if (!atomic_load(&tally->notify) || !atomic_exchange(&tally->notify, false))
        return;
    uint64_t one = 1;
    (void)!write(receiver->wake_fd, &one,
                 sizeof(one)); /* fails only when the count is at its limit */
}

/* The number of the first message that waits, which the sender wrote, says what was taken. The
 * receiver could write anything into the tally. */
void ipc_fdpass_receiver_died(const struct ipc_fdpass_channel *channel,
                              struct ipc_fdpass_tally *tally, uint32_t number)
{
    uint32_t first;
    ssize_t len = recv(channel->receiving_fd, &first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);
    uint32_t taken = len == (ssize_t)sizeof(first) ? first - 1 : number;
    atomic_store(&tally->taken, taken);
    atomic_store(&tally->ended, taken);
}
