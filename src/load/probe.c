/* SPDX-License-Identifier: MIT */
#include "load/probe.h"

#include "base/duration.h"
#include "load/http2.h"
#include "load/socket.h"
#include "os/clock.h"
#include "tls/client.h"
#include "tls/connection.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { PROBES_MAX = 32, BYTES = 16 * 1024 };

#define LIMIT_NS (5 * DURATION_SECOND) /* where the plan has no limit */

/* ---- a socket with a limit ---- */

static bool wait_for(int fd, short events, uint64_t until_ns)
{
    struct pollfd poller = { .fd = fd, .events = events };
    int count;
    do {
        count = poll(&poller, 1, os_clock_wait_ms(until_ns));
    } while ((count < 0 && errno == EINTR) || (count == 0 && os_clock_now_ns() < until_ns));
    return count > 0;
}

/* Gives the number of bytes; 0: the connection is over, or the time is. */
static size_t receive_some(int fd, char *bytes, size_t size, uint64_t until_ns)
{
    ssize_t got;
    do {
        got = wait_for(fd, POLLIN, until_ns) ? recv(fd, bytes, size, 0) : 0;
    } while (got < 0 && (errno == EINTR || errno == EAGAIN));
    return got > 0 ? (size_t)got : 0;
}

static bool send_wire(int fd, struct tls_connection *c, uint64_t until_ns)
{
    struct span piece;
    while (tls_wire_pieces(&c->wire, &piece, 1) > 0) {
        ssize_t sent = send(fd, piece.at, piece.len, MSG_NOSIGNAL);
        if (sent >= 0)
            tls_wire_sent(&c->wire, c->chunks, (size_t)sent);
        else if (errno != EINTR && (errno != EAGAIN || !wait_for(fd, POLLOUT, until_ns)))
            return false;
    }
    return true;
}

/* ---- a handshake ---- */

enum ending { ENDING_GOOD, ENDING_FAILED, ENDING_PLAIN, ENDING_UNKNOWN };

static enum ending make_handshake(int fd, struct tls_connection *c, uint64_t until_ns)
{
    char bytes[BYTES];
    enum tls_result result;
    for (bool first = true; (result = tls_connection_handshake(c)) == TLS_MORE; first = false) {
        size_t got = send_wire(fd, c, until_ns) ? receive_some(fd, bytes, sizeof(bytes), until_ns)
                                                : 0;
        if (got == 0)
            return ENDING_UNKNOWN;
        c->in = span_of(bytes, got);
        if (first && span_starts(c->in, SPAN("HTTP/")))
            return ENDING_PLAIN;
    }
    if (result == TLS_DONE)
        tls_connection_end(c); /* the end of the handshake goes with it */
    (void)send_wire(fd, c, until_ns);
    return result == TLS_DONE ? ENDING_GOOD : ENDING_FAILED;
}

static bool refuse_certificate(enum tls_client_cure cure, const char *host, const char *why,
                               struct option_refusal *refusal)
{
    static const char *const cures[] = {
        [TLS_CURE_AUTHORITY] = "trust its authority with --cacert FILE",
        [TLS_CURE_NAME] = "use a URL with a name of the certificate",
        [TLS_CURE_DATE] = "renew it, set the clock of this machine",
        [TLS_CURE_OTHER] = "replace it",
    };
    return option_refuse(refusal,
                         "the certificate of %.100s %s; %s, or skip the check with "
                         "--insecure",
                         host, why, cures[cure]);
}

static bool judge_server(const struct load_plan *plan, const struct load_target *target,
                         struct tls_connection *c, enum ending ending,
                         struct option_refusal *refusal)
{
    char why[TLS_CLIENT_WHY_MAX];
    enum tls_client_cure cure = TLS_CURE_NONE;
    switch (ending) {
    case ENDING_GOOD:
        cure = tls_client_doubt(plan->client, c->ssl, target->name, why);
        if (cure != TLS_CURE_NONE)
            return refuse_certificate(cure, target->host, why, refusal);
        return !plan->http2 || tls_connection_is_http2(c) ||
               option_refuse(refusal,
                             "%.100s offers no HTTP/2 (ALPN chose another protocol); enable HTTP/2 "
                             "on the server, or leave --http2 out",
                             target->host);
    case ENDING_FAILED:
        return c->memory_failed ||
               option_refuse(refusal,
                             "the TLS handshake with %.100s failed (%s); check that the server "
                             "speaks TLS 1.2 or 1.3 at this port",
                             target->host, tls_client_reason(c->error));
    case ENDING_PLAIN:
        return option_refuse(refusal, "%.100s answers without TLS; use http://, or another port",
                             target->host);
    case ENDING_UNKNOWN:
        break;
    }
    return true;
}

static bool probe_tls(const struct load_plan *plan, const struct load_target *target, int fd,
                      uint64_t until_ns, struct option_refusal *refusal)
{
    struct tls_chunks chunks = { 0 };
    struct tls_connection c;
    SSL *ssl = tls_client_probe(plan->client, target->name);
    bool good = true;
    if (ssl && tls_connection_open(&c, ssl, &chunks)) {
        enum ending ending = make_handshake(fd, &c, until_ns);
        good = judge_server(plan, target, &c, ending, refusal);
        tls_connection_close(&c);
    }
    tls_chunks_trim(&chunks, 0);
    return good;
}

/* Whether the server answers the preface of HTTP/2 with SETTINGS (RFC 9113 section 3.4). A server
 * that closes or does not answer is left to the run. */
static bool probe_clear(const struct load_target *target, int fd, uint64_t until_ns,
                        struct option_refusal *refusal)
{
    char bytes[BYTES];
    size_t len = 0, got = 1;
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct load_http2 http2 = { 0 };
    struct load_http2_stream stream;
    load_http2_begin(&http2, &stream, 1, false, &out);
    if (send(fd, out.at, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
        return true;
    for (; len < HTTP2_FRAME_HEAD && got > 0; len += got)
        got = receive_some(fd, bytes + len, BYTES - len, until_ns);
    if (len < HTTP2_FRAME_HEAD)
        return true;
    if (http2_frame_read(bytes).type != HTTP2_FRAME_SETTINGS)
        return option_refuse(refusal,
                             "%.100s does not speak HTTP/2 in clear text; enable it on the server "
                             "(weir: h2c), use https://, or leave --http2 out",
                             target->host);
    out.len = 0;
    load_http2_end(&out);
    (void)send(fd, out.at, out.len, MSG_NOSIGNAL);
    return true;
}

static bool probe_server(const struct load_plan *plan, const struct load_target *target,
                         struct option_refusal *refusal)
{
    uint64_t limit_ns = plan->connect_timeout_ns > 0 ? plan->connect_timeout_ns : LIMIT_NS;
    uint64_t until_ns = os_clock_now_ns() + limit_ns;
    int fd = load_socket_connect(plan, target, 0);
    if (fd < 0)
        return true;
    bool good = true;
    if (wait_for(fd, POLLOUT, until_ns))
        good = target->tls ? probe_tls(plan, target, fd, until_ns, refusal)
                           : probe_clear(target, fd, until_ns, refusal);
    close(fd);
    return good;
}

bool load_probe_servers(const struct load_plan *plan, struct option_refusal *refusal)
{
    unsigned probes = 0;
    for (unsigned i = 0; i < plan->target_count && probes < PROBES_MAX; i++) {
        const struct load_target *target = &plan->targets[i];
        if ((!target->tls && !plan->http2) || target->origin != i)
            continue;
        if (!probe_server(plan, target, refusal))
            return false;
        probes++;
    }
    return true;
}
