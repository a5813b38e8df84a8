/* SPDX-License-Identifier: MIT */
#include "model/transfer.h"

#include <errno.h>
#include <sys/sendfile.h>

enum { SENDFILE_CHUNK = 2048 * 1024 }; /* asked of one sendfile */

static ssize_t send_memory(int fd, const struct session_out *out, int flags)
{
    flags |= model_transfer_flags(out);
    if (out->piece[1].len == 0)
        return send(fd, out->piece[0].at, out->piece[0].len, flags);
    struct iovec parts[2];
    for (unsigned i = 0; i < 2; i++)
        parts[i] = (struct iovec){ (void *)(uintptr_t)out->piece[i].at, out->piece[i].len };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    return sendmsg(fd, &message, flags);
}

/* What one call is asked to take. */
static size_t asked_of(const struct session_out *out)
{
    size_t memory = out->piece[0].len + out->piece[1].len;
    if (memory > 0)
        return memory;
    return out->file_len < SENDFILE_CHUNK ? (size_t)out->file_len : SENDFILE_CHUNK;
}

/* Sends what one call takes. Bytes taken, 0 for none just now, -ENODATA when the
 * file has lost its end, or another -errno. */
static ssize_t send_some(int fd, const struct session_out *out, int flags)
{
    ssize_t sent;
    if (out->piece[0].len > 0) {
        sent = send_memory(fd, out, flags);
    } else {
        off_t offset = (off_t)out->file_offset;
        sent = sendfile(fd, out->file_fd, &offset, asked_of(out));
        if (sent == 0)
            return -ENODATA;
    }
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* A short count says that the kernel is full: asking again would only confirm it. */
enum session_want model_transfer_send(struct session *s, int fd, int flags, size_t most,
                                      uint64_t now_ns)
{
    enum session_want want = WANT_WRITE;
    size_t total = 0;
    bool full = false;
    while (want == WANT_WRITE && !full && total < most) {
        struct session_out out = session_output(s);
        ssize_t sent = send_some(fd, &out, flags);
        if (sent == -ENODATA)
            return session_cut(s);
        if (sent < 0)
            return WANT_CLOSE;
        want = session_sent(s, (size_t)sent, now_ns);
        total += (size_t)sent;
        full = (size_t)sent < asked_of(&out);
    }
    return want;
}
