/* SPDX-License-Identifier: MIT
 *
 * `weir trace --live`: one request to a running server, through one of its own listeners.
 */
#include "base/duration.h"
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

/* Receives up to the end of the head. 0 or -errno. */
static int receive_head(int fd, struct trace_live *live)
{
    uint64_t due_ns = os_clock_now_ns() + PATIENCE_MS * DURATION_MS;
    size_t len = 0;
    while (len < sizeof(live->head)) {
        struct pollfd end = { .fd = fd, .events = POLLIN };
        int ready = poll(&end, 1, os_clock_wait_ms(due_ns));
        if (ready == 0)
            return -ETIMEDOUT;
        ssize_t got = ready < 0 ? -1 : recv(fd, live->head + len, sizeof(live->head) - len, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        len += (size_t)got;
        const char *last = memmem(live->head, len, "\r\n\r\n", 4);
        if (last) {
            live->head_len = (size_t)(last + 4 - live->head);
            return 0;
        }
    }
    return -EMSGSIZE;
}

int trace_ask(struct trace_live *live, struct span request)
{
    int fd = connect_to_server(live->url);
    int rc = fd < 0 ? fd : 0;
    if (rc == 0)
        (void)send_request(fd, request);
    if (rc == 0)
        rc = receive_head(fd, live);
    if (fd >= 0)
        close(fd);
    live->asked = rc == 0;
    return rc;
}
