/* SPDX-License-Identifier: MIT */
#include "model/transfer.h"

#include "os/clock.h"
#include "os/socket.h"
#include "session/thread.h"

#include <errno.h>
#include <poll.h>
#include <sys/sendfile.h>

enum { SENDFILE_CHUNK = 2048 * 1024 }; /* requested in one sendfile */

unsigned model_transfer_parts(const struct session_out *out, struct iovec parts[SESSION_PIECES])
{
    for (unsigned i = 0; i < out->count; i++)
        parts[i] = (struct iovec){ (void *)(uintptr_t)out->piece[i].at, out->piece[i].len };
    return out->count;
}

static ssize_t send_memory(int fd, const struct session_out *out, int flags)
{
    flags |= model_transfer_flags(out);
    if (out->count == 1)
        return send(fd, out->piece[0].at, out->piece[0].len, flags);
    struct iovec parts[SESSION_PIECES];
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = model_transfer_parts(out, parts) };
    return sendmsg(fd, &message, flags);
}

/* The bytes that one call tries to send. */
static size_t requested_of(const struct session_out *out)
{
    size_t memory = 0;
    for (unsigned i = 0; i < out->count; i++)
        memory += out->piece[i].len;
    if (memory > 0)
        return memory;
    return out->file_len < SENDFILE_CHUNK ? (size_t)out->file_len : SENDFILE_CHUNK;
}

/* After a short count the socket is full: another call would return EAGAIN. */
ssize_t model_transfer_some(int fd, const struct session_out *out, int flags, bool *ret_full)
{
    size_t requested = requested_of(out);
    ssize_t sent;
    if (out->count > 0) {
        sent = send_memory(fd, out, flags);
    } else {
        off_t offset = (off_t)out->file_offset;
        sent = sendfile(fd, out->file_fd, &offset, requested);
        if (sent == 0)
            return -ENODATA;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return -errno;
    *ret_full = sent < 0 || (size_t)sent < requested;
    return sent < 0 ? 0 : sent;
}

unsigned model_transfer_send(struct session *s, int fd, size_t most, uint64_t now_ns)
{
    unsigned want = SESSION_WRITE;
    size_t total = 0, turn = most;
    bool full = false;
    if (session_delayed(s))
        os_socket_lift_unsent(fd); /* the socket was full, and the client has read since */
    while (want & SESSION_WRITE && !full && total < turn) {
        struct session_out out = session_output(s);
        turn = model_transfer_turn(&out, most);
        ssize_t sent = model_transfer_some(fd, &out, MSG_DONTWAIT, &full);
        if (sent == -ENODATA)
            return session_cut(s);
        if (sent < 0) {
            session_failed(s, (int)-sent);
            return SESSION_CLOSE;
        }
        if (session_thread_is_timed(s->thread))
            now_ns = s->thread->now_ns = os_clock_now_ns(); /* response times end here */
        want = session_sent(s, (size_t)sent, now_ns);
        total += (size_t)sent;
    }
    if (want & SESSION_WRITE)
        session_hold(s); /* keeps the entry of an answer of which nothing has been sent yet */
    return want;
}

bool model_transfer_is_lost(int fd)
{
    struct pollfd end = { .fd = fd };
    return poll(&end, 1, 0) > 0 && (end.revents & (POLLERR | POLLHUP)) != 0;
}

unsigned model_transfer_expire(struct session *s, int fd, uint64_t now_ns)
{
    bool sending = session_has_output(s);
    if (sending && now_ns >= session_deadline_ns(s))
        session_note_taken(s, os_socket_taken(fd), now_ns);
    unsigned want = session_expire(s, now_ns);
    if (sending && want == SESSION_CLOSE)
        os_socket_reset_at_close(fd);
    return want;
}
