/* SPDX-License-Identifier: MIT */
#include "ipc/mailbox.h"

#include "os/file.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { OLD_MAX = 16 }; /* messages removed by one put; there is at most one */

union rights {
    struct cmsghdr first;
    char space[CMSG_SPACE(IPC_MAILBOX_MAX * sizeof(int))];
};

int ipc_mailbox_open(struct ipc_mailbox *box)
{
    int ends[2];
    *box = (struct ipc_mailbox){ -1, -1 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -errno;
    *box = (struct ipc_mailbox){ ends[0], ends[1] };
    (void)shutdown(box->writing_fd, SHUT_RD); /* a reader cannot fill the writer's queue */
    return 0;
}

void ipc_mailbox_close(struct ipc_mailbox *box)
{
    os_file_close(box->writing_fd);
    os_file_close(box->reading_fd);
    *box = (struct ipc_mailbox){ -1, -1 };
}

/* Without a control buffer the kernel closes the descriptors of a message. */
static void remove_old(const struct ipc_mailbox *box)
{
    char byte;
    for (int i = 0; i < OLD_MAX; i++)
        if (recv(box->reading_fd, &byte, sizeof(byte), MSG_DONTWAIT) <= 0)
            return;
}

int ipc_mailbox_put(const struct ipc_mailbox *box, const struct ipc_mailbox_item *items,
                    unsigned count)
{
    char labels[IPC_MAILBOX_MAX];
    union rights rights = { 0 };
    CHECK(count > 0 && count <= IPC_MAILBOX_MAX);
    struct iovec text = { labels, count };
    struct msghdr header = {
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = &rights,
        .msg_controllen = CMSG_SPACE(count * sizeof(int)),
    };
    struct cmsghdr *first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (unsigned i = 0; i < count; i++) {
        labels[i] = items[i].label;
        memcpy(CMSG_DATA(first) + i * sizeof(int), &items[i].fd, sizeof(int));
    }
    remove_old(box);
    ssize_t sent;
    do
        sent = sendmsg(box->writing_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* The descriptors of a message; returns how many. */
static unsigned take_rights(struct msghdr *header, int fds[IPC_MAILBOX_MAX])
{
    struct cmsghdr *first = CMSG_FIRSTHDR(header);
    if (!first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t count = (first->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    CHECK(count <= IPC_MAILBOX_MAX);
    memcpy(fds, CMSG_DATA(first), count * sizeof(int));
    return (unsigned)count;
}

int ipc_mailbox_read(int reading_fd, struct ipc_mailbox_item ret_items[IPC_MAILBOX_MAX])
{
    char labels[IPC_MAILBOX_MAX];
    int fds[IPC_MAILBOX_MAX];
    union rights rights = { 0 };
    struct iovec text = { labels, sizeof(labels) };
    struct msghdr header = {
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = &rights,
        .msg_controllen = sizeof(rights.space),
    };
    ssize_t len;
    do
        len = recvmsg(reading_fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    if (len <= 0)
        return len < 0 ? -errno : -EPIPE;
    unsigned count = take_rights(&header, fds);
    if (count == (size_t)len && !(header.msg_flags & MSG_TRUNC)) {
        for (unsigned i = 0; i < count; i++)
            ret_items[i] = (struct ipc_mailbox_item){ labels[i], fds[i] };
        return (int)count;
    }
    for (unsigned i = 0; i < count; i++)
        os_file_close(fds[i]);
    return header.msg_flags & MSG_CTRUNC ? -EMFILE : -EPROTO;
}
