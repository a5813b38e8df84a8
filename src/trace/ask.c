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
#include "tls/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

/* Connects to "http://127.0.0.1:8080/", "https://..." or "unix:/path". Returns a descriptor or
 * -errno. */
static int connect_to_server(const char *url)
{
    struct os_socket_address address;
    char text[256];
    const char *after = strstr(url, "://");
    if (!after)
        return os_socket_connect(url + (strncmp(url, "unix:", 5) == 0 ? 5 : 0));
    struct span name = span_text(after + 3);
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

/* Waits for bytes until `due_ns`. Returns how many there are, or -errno. */
static ssize_t receive_bytes(int fd, char *to, size_t size, uint64_t due_ns)
{
    for (;;) {
        struct pollfd end = { .fd = fd, .events = POLLIN };
        int ready = poll(&end, 1, os_clock_wait_ms(due_ns));
        if (ready == 0)
            return -ETIMEDOUT;
        ssize_t got = ready < 0 ? -1 : recv(fd, to, size, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        return got < 0 ? -errno : got > 0 ? got : -ECONNRESET;
    }
}

/* The answer, as far as it has arrived. */
struct reading {
    struct trace_live *live;
    struct trace_http2 *http2; /* NULL: HTTP/1.1 */
    char *bytes;
    size_t len, size;
};

static struct reading begin_reading(struct trace_live *live, struct trace_http2 *http2)
{
    static char frames[64 * 1024];
    if (http2)
        return (struct reading){ live, http2, frames, 0, sizeof(frames) };
    return (struct reading){ live, NULL, live->head, 0, sizeof(live->head) };
}

/* `got` bytes more have arrived. 1: the head is complete. 0: it is not. Otherwise -errno. */
static int take_bytes(struct reading *r, size_t got)
{
    struct trace_live *live = r->live;
    struct buf head = buf_over(live->head, sizeof(live->head)), why = head;
    r->len += got;
    if (!r->http2) {
        const char *last = memmem(r->bytes, r->len, "\r\n\r\n", 4);
        live->head_len = last ? (size_t)(last + 4 - r->bytes) : 0;
        return last != NULL;
    }
    switch (trace_http2_read(r->http2, span_of(r->bytes, r->len), &head, &why)) {
    case TRACE_HTTP2_HEAD:
        live->head_len = head.len;
        return 1;
    case TRACE_HTTP2_REFUSED:
        live->head_len = why.len;
        return -EPROTO;
    case TRACE_HTTP2_MORE:
        break;
    }
    return 0;
}

/* Receives up to the end of the head. 0 or -errno. */
static int receive_answer(int fd, struct reading *r, uint64_t due_ns)
{
    int rc = 0;
    while (rc == 0 && r->len < r->size) {
        ssize_t got = receive_bytes(fd, r->bytes + r->len, r->size - r->len, due_ns);
        rc = got < 0 ? (int)got : take_bytes(r, (size_t)got);
    }
    return rc < 0 ? rc : rc == 0 ? -EMSGSIZE : 0;
}

/* ---- over TLS ---- */

/* A connection with TLS, and the bytes that it has received last. */
struct secured {
    int fd;
    struct tls_connection connection;
    struct tls_chunks chunks;
    char in[4096];
};

/* Sends what waits, and receives more. 0 or -errno. */
static int exchange_records(struct secured *s, uint64_t due_ns)
{
    struct span piece;
    while (tls_wire_pieces(&s->connection.wire, &piece, 1) > 0) {
        bool sent = send_request(s->fd, piece);
        tls_wire_sent(&s->connection.wire, &s->chunks, piece.len);
        if (!sent)
            return -EPIPE;
    }
    if (s->connection.in.len > 0)
        return 0;
    ssize_t got = receive_bytes(s->fd, s->in, sizeof(s->in), due_ns);
    s->connection.in = span_of(s->in, got > 0 ? (size_t)got : 0);
    return got < 0 ? (int)got : 0;
}

static int shake_hands(struct secured *s, uint64_t due_ns)
{
    enum tls_result result;
    int rc = 0;
    while (rc == 0 && (result = tls_connection_handshake(&s->connection)) != TLS_DONE)
        rc = result == TLS_MORE ? exchange_records(s, due_ns) : -ECONNABORTED;
    return rc;
}

static int receive_secured(struct secured *s, struct reading *r, uint64_t due_ns)
{
    int rc = 0;
    while (rc == 0 && r->len < r->size) {
        size_t got;
        enum tls_result result =
            tls_connection_read(&s->connection, r->bytes + r->len, r->size - r->len, &got);
        rc = take_bytes(r, got);
        if (rc == 0 && result == TLS_MORE)
            rc = exchange_records(s, due_ns);
        else if (rc == 0 && result != TLS_DONE)
            rc = -ECONNRESET;
    }
    return rc < 0 ? rc : rc == 0 ? -EMSGSIZE : 0;
}

/* The server has chosen the protocol. -EPROTO, with the reason in words: it is not HTTP/2. */
static int check_protocol(const struct secured *s, const struct reading *r)
{
    struct buf why = buf_over(r->live->head, sizeof(r->live->head));
    if (!r->http2 || tls_connection_is_http2(&s->connection))
        return 0;
    buf_add(&why, SPAN("the server offers no HTTP/2 there; its setting `http2` is off"));
    r->live->head_len = why.len;
    return -EPROTO;
}

static int ask_secured(struct secured *s, struct reading *r, struct span request, uint64_t due_ns)
{
    struct trace_live *live = r->live;
    int rc = shake_hands(s, due_ns);
    if (rc == 0)
        rc = check_protocol(s, r);
    if (rc < 0)
        return rc;
    live->agreed = tls_connection_agreed(&s->connection);
    (void)snprintf(live->group, sizeof(live->group), "%s", live->agreed.group);
    live->agreed.group = live->group;
    if (tls_connection_write(&s->connection, request) != TLS_DONE)
        return -ECONNRESET;
    return receive_secured(s, r, due_ns);
}

/* The host of the request, without its port. A name that TLS cannot send becomes
 * localhost. */
static void name_of(const char *host, char out[256])
{
    bool bracketed = host[0] == '[';
    host += bracketed;
    size_t len = strcspn(host, bracketed ? "]" : ":");
    if (len == 0 || len >= 256)
        (void)snprintf(out, 256, "localhost");
    else
        (void)snprintf(out, 256, "%.*s", (int)len, host);
}

static int ask_over_tls(int fd, struct reading *r, struct span request, const char *host,
                        uint64_t due_ns)
{
    char why[TLS_CLIENT_WHY_MAX], name[256];
    struct secured s = { .fd = fd };
    const struct tls_client_plan plan = { .insecure = true, .http2 = r->http2 != NULL };
    struct tls_client *client = tls_client_new(&plan, why);
    name_of(host, name);
    SSL *ssl = client ? tls_client_connect(client, name, NULL) : NULL;
    int rc = -ENOMEM;
    if (ssl && tls_connection_open(&s.connection, ssl, &s.chunks)) {
        rc = ask_secured(&s, r, request, due_ns);
        tls_connection_close(&s.connection);
    }
    tls_chunks_trim(&s.chunks, 0);
    tls_client_free(client);
    return rc;
}

int trace_ask(struct trace_live *live, struct span request, struct trace_http2 *http2,
              const char *host)
{
    uint64_t due_ns = os_clock_now_ns() + PATIENCE_MS * DURATION_MS;
    struct reading r = begin_reading(live, http2);
    const struct span bytes = http2 ? trace_http2_frames(http2) : request;
    int fd = connect_to_server(live->url);
    int rc = fd < 0 ? fd : 0;
    if (rc == 0 && trace_is_over_tls(live)) {
        rc = ask_over_tls(fd, &r, bytes, host, due_ns);
    } else if (rc == 0) {
        (void)send_request(fd, bytes);
        rc = receive_answer(fd, &r, due_ns);
    }
    if (fd >= 0)
        close(fd);
    live->asked = rc == 0;
    return rc;
}
