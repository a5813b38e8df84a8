/* SPDX-License-Identifier: MIT
 *
 * Descriptors for a process and its children, which a more privileged process keeps up to date. The
 * mailbox holds at most one message. A reader copies the message and leaves it in place, so every
 * process that has the reading end gets the same descriptors. The kernel carries them (SCM_RIGHTS).
 *
 * A reader cannot send anything to the writer, which never reads. A hostile reader can remove the
 * message, or break the mailbox: use one mailbox for each worker.
 */
#pragma once

#include "base/check.h"

enum { IPC_MAILBOX_MAX = 4 }; /* descriptors in a message */

struct ipc_mailbox {
    int writing_fd; /* both are non-blocking and CLOEXEC, and -1 after they are closed */
    int reading_fd; /* inherited by the readers; the writer needs it, too */
};

/* A descriptor, and a letter that says to the reader what it is. */
struct ipc_mailbox_item {
    char label;
    int fd;
};

/* 0 or -errno. */
MUST_USE int ipc_mailbox_open(struct ipc_mailbox *box);
void ipc_mailbox_close(struct ipc_mailbox *box);

/* Replaces the message. Copies the descriptors; the caller still closes its own. For a moment the
 * mailbox is empty: wake the readers afterwards. 0 or -errno. */
MUST_USE int ipc_mailbox_put(const struct ipc_mailbox *box, const struct ipc_mailbox_item *items,
                             unsigned count);

/* Copies the message. Returns the number of items, whose descriptors (CLOEXEC) the caller closes.
 * -EAGAIN: the mailbox is empty. -EMFILE: this process has too few free descriptors. -EPROTO: the
 * message has another form. Safe in a signal handler, and in several processes at once. */
MUST_USE int ipc_mailbox_read(int reading_fd, struct ipc_mailbox_item ret_items[IPC_MAILBOX_MAX]);
