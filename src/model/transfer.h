/* SPDX-License-Identifier: MIT
 *
 * Sends a session's output on a socket: which pieces go in one call, whether a segment waits for
 * more, and what a short count means. For models that send and learn at once how much the kernel
 * took. Model `uring` uses only the flags and the parts of a message.
 */
#pragma once

#include "session/session.h"

#include <sys/socket.h>

enum {
    /* A head and the file behind it share a segment, which saves one segment. A head before a long
     * file is sent alone, because the file's pages then fill whole segments. Sending it alone,
     * measured under BBR: -23 % CPU for 1 MiB, +50 % for 300 KiB. */
    MODEL_HEAD_ALONE_FROM = 512 * 1024,

    /* A turn sends this much from memory at most. Memory costs more than a file: the kernel copies
     * it, and with TLS the session has encrypted it before. 1.7 MB of a listing took 0.5 ms. */
    MODEL_MEMORY_TURN = 256 * 1024
};

/* The bytes that a turn may send, `most` or less, if it begins or continues with `out`. Shortens a
 * piece of memory that is longer than a turn. */
static inline size_t model_transfer_turn(struct session_out *out, size_t most)
{
    if (out->count == 0 || most <= MODEL_MEMORY_TURN)
        return most;
    struct span *last = &out->piece[out->count - 1];
    if (last->len > MODEL_MEMORY_TURN)
        last->len = MODEL_MEMORY_TURN;
    return MODEL_MEMORY_TURN;
}

/* The flags of send(2) for the pieces of `out` that are memory. */
static inline int model_transfer_flags(const struct session_out *out)
{
    bool more = out->last || (out->file_len > 0 && out->file_len < MODEL_HEAD_ALONE_FROM);
    return MSG_NOSIGNAL | (more ? MSG_MORE : 0);
}

/* The pieces of `out` for sendmsg(2). Returns their number. */
unsigned model_transfer_parts(const struct session_out *out, struct iovec parts[SESSION_PIECES]);

/* Sends with one call. Returns the bytes that the kernel took (0: none now), -ENODATA when the file
 * has become shorter (session_cut), or another -errno when the connection is lost. Sets `ret_full`
 * when the socket takes no more at present. `flags` is MSG_DONTWAIT or 0, and applies to memory.
 * For a file, the descriptor's own mode decides whether the call waits. */
ssize_t model_transfer_some(int fd, const struct session_out *out, int flags, bool *ret_full);

/* Sends until the session has nothing more to send, the kernel takes no more, or `most` bytes have
 * been sent. Returns what the session wants then. With SESSION_WRITE the caller continues in a
 * later turn. The descriptor does not block. */
unsigned model_transfer_send(struct session *s, int fd, size_t most, uint64_t now_ns);

/* Sends, at most `most` bytes, and half-closes, where `want` says so. Returns what the session
 * wants then. The descriptor does not block. */
static inline unsigned model_transfer_follow(struct session *s, int fd, unsigned want, size_t most,
                                             uint64_t now_ns)
{
    if (want & SESSION_WRITE)
        want = model_transfer_send(s, fd, most, now_ns);
    if (want != SESSION_HALF_CLOSE)
        return want;
    (void)shutdown(fd, SHUT_WR); /* fails only when the peer is gone, and then recv does */
    return SESSION_READ;
}

/* Whether nothing more can be sent or received. For a descriptor whose events may be those of an
 * earlier connection with the same number. */
bool model_transfer_is_lost(int fd);

/* Calls session_expire. A send has not timed out while the client takes what the kernel has. When
 * it has, the close of `fd` resets the connection: otherwise the kernel would keep the unsent
 * output while the client leaves its window closed. */
unsigned model_transfer_expire(struct session *s, int fd, uint64_t now_ns);

/* After session_feed, in a thread without a timer for the connection: bytes that keep arriving end
 * each wait, and so they must not keep the deadline from being seen. Returns what the session wants
 * now. */
static inline unsigned model_transfer_limit(struct session *s, int fd, unsigned want,
                                            uint64_t now_ns)
{
    if (want & SESSION_WRITE || !(want & SESSION_READ) ||
        __builtin_expect(now_ns < session_deadline_ns(s), 1))
        return want;
    return model_transfer_expire(s, fd, now_ns);
}
