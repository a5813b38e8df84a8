/* SPDX-License-Identifier: MIT
 *
 * `weir trace --live`: one request to a running server, through one of its own listeners.
 */
#include "base/buf.h"
#include "base/duration.h"
#include "trace/http2.h"
#include "trace/trace.h"

#include "os/clock.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

/* Connects to "http://127.0.0.1:8080/" or "unix:/path". Returns a descriptor or -errno. */
static int connect_to_server(const char *url)
{
    struct os_socket_address address;
    char text[256];
    struct span name = span_text(url);
    if (!span_starts(name, SPAN("http://")))
        return os_socket_connect(url + (span_starts(name, SPAN("unix:")) ? 5 : 0));
    name = span_skip(name, sizeof("http://") - 1);
    (void)snprintf(text, sizeof(text), "%.*s", (int)name.len - span_ends(name, SPAN("/")), name.at);
    int rc = os_socket_parse(text, &address);
    int fd = rc < 0 ? rc : socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (rc == 0 && fd < 0)
        return -errno;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address.storage, address.len) < 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static bool send_request(int fd, struct span bytes)
{
    while (bytes.len > 0) {
        ssize_t len = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return false; /* an answer may have arrived before */
        bytes = span_skip(bytes, (size_t)len);
    }
    return true;
}

/* Receives at least a byte until `due_ns`. Returns how many, or -errno. */
static ssize_t receive_some(int fd, char *to, size_t size, uint64_t due_ns)
{
    for (;;) {
        struct pollfd end = { .fd = fd, .events = POLLIN };
        int ready = poll(&end, 1, os_clock_wait_ms(due_ns));
        if (ready == 0)
            return -ETIMEDOUT;
        ssize_t got = ready < 0 ? -1 : recv(fd, to, size, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        return got > 0 ? got : got < 0 ? -errno : -ECONNRESET;
    }
}

/* Receives up to the end of the head. 0 or -errno. */
static int receive_head(int fd, struct trace_live *live)
{
    uint64_t due_ns = os_clock_now_ns() + PATIENCE_MS * DURATION_MS;
    size_t len = 0;
    while (len < sizeof(live->head)) {
        ssize_t got = receive_some(fd, live->head + len, sizeof(live->head) - len, due_ns);
        if (got < 0)
            return (int)got;
        len += (size_t)got;
        const char *last = memmem(live->head, len, "\r\n\r\n", 4);
        if (last) {
            live->head_len = (size_t)(last + 4 - live->head);
            return 0;
        }
    }
    return -EMSGSIZE;
}

/* Receives frames up to the head of the answer. 0 or -errno. */
static int receive_frames(int fd, struct trace_live *live, struct trace_http2 *http2)
{
    static char bytes[64 * 1024];
    struct buf frames = buf_over(bytes, sizeof(bytes)),
               head = buf_over(live->head, sizeof(live->head)), why = head;
    uint64_t due_ns = os_clock_now_ns() + PATIENCE_MS * DURATION_MS;
    while (buf_room(&frames) > 0) {
        ssize_t got = receive_some(fd, bytes + frames.len, buf_room(&frames), due_ns);
        if (got < 0)
            return (int)got;
        frames.len += (size_t)got;
        enum trace_http2_result result = trace_http2_read(http2, buf_span(&frames), &head, &why);
        live->head_len = result == TRACE_HTTP2_HEAD ? head.len : why.len;
        if (result != TRACE_HTTP2_MORE)
            return result == TRACE_HTTP2_HEAD ? 0 : -EPROTO;
    }
    return -EMSGSIZE;
}

int trace_ask(struct trace_live *live, struct span request, struct trace_http2 *http2)
{
    int fd = connect_to_server(live->url);
    int rc = fd < 0 ? fd : 0;
    if (rc == 0)
        (void)send_request(fd, http2 ? trace_http2_frames(http2) : request);
    if (rc == 0)
        rc = http2 ? receive_frames(fd, live, http2) : receive_head(fd, live);
    if (fd >= 0)
        close(fd);
    live->asked = rc == 0;
    return rc;
}
