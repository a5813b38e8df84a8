/* SPDX-License-Identifier: MIT
 *
 * How a session's output goes out on a socket: what is one call, what shares a
 * segment with what follows, and what a short count means. For models that send
 * and see at once what the kernel took.
 */
#pragma once

#include "session/session.h"

#include <sys/socket.h>

enum {
    /* A head shares its first segment with the file behind it, which spares one;
     * before a long file it goes alone, for then the file's pages fill segments
     * of their own. Measured under BBR: -23 % CPU for 1 MiB, +50 % for 300 KiB. */
    MODEL_HEAD_ALONE_FROM = 512 * 1024
};

/* The flags for sending the pieces of `out` that are memory. */
static inline int model_transfer_flags(const struct session_out *out)
{
    bool more = out->last || (out->file_len > 0 && out->file_len < MODEL_HEAD_ALONE_FROM);
    return MSG_NOSIGNAL | (more ? MSG_MORE : 0);
}

/* Sends what one call takes. Bytes taken, 0 for none just now, -ENODATA when the file has
 * lost its end (session_cut), or another -errno, when the connection is lost. `ret_full`: asking
 * again at once would be in vain. `flags` is MSG_DONTWAIT or 0, and concerns memory: for files
 * it is the descriptor that blocks or does not. */
ssize_t model_transfer_some(int fd, const struct session_out *out, int flags, bool *ret_full);

/* Sends until the session wants something else, the kernel takes no more, or
 * `most` bytes have gone; the last two are WANT_WRITE, and may go on in another
 * turn. The descriptor does not block. */
enum session_want model_transfer_send(struct session *s, int fd, size_t most, uint64_t now_ns);
