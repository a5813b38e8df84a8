/* SPDX-License-Identifier: MIT */
#include "session/line.h"

#include "base/buf.h"
#include "http/traceparent.h"
#include "session/answer.h"
#include "session/http2.h"
#include "session/tls.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum { PEER_MAX = SESSION_LINE_PEER_MAX };
static_assert(PEER_MAX >= INET6_ADDRSTRLEN, "an address fits");

static char *put_octet(char *at, unsigned value)
{
    if (value >= 100)
        *at++ = (char)('0' + value / 100);
    if (value >= 10)
        *at++ = (char)('0' + value / 10 % 10);
    *at++ = (char)('0' + value % 10);
    return at;
}

static size_t format_peer(char out[PEER_MAX], const struct session_peer *peer)
{
    if (peer->family == 4) {
        char *at = put_octet(out, peer->address[0]);
        for (int i = 1; i < 4; i++) {
            *at++ = '.';
            at = put_octet(at, peer->address[i]);
        }
        return (size_t)(at - out);
    }
    if (peer->family == 6 && inet_ntop(AF_INET6, peer->address, out, PEER_MAX))
        return strlen(out);
    out[0] = '-';
    return 1;
}

/* The storage of the texts of one line's addresses. */
struct addresses {
    char peer[PEER_MAX], via[PEER_MAX];
};

/* A connection of HTTP/2 keeps the text, because it has many requests. */
static struct span peer_of(const struct session_exchange *x, char storage[PEER_MAX])
{
    struct session_http2 *h = x->session->http2;
    if (__builtin_expect(h == NULL, 1))
        return span_of(storage, format_peer(storage, &x->session->peer));
    if (h->peer_len == 0)
        h->peer_len = (uint8_t)format_peer(h->peer, &x->session->peer);
    return span_of(h->peer, h->peer_len);
}

static bool same_address(const struct session_peer *a, const struct session_peer *b)
{
    return a->family == b->family && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* Sets the addresses of the line. */
static void add_addresses(struct log_access_line *line, const struct session_exchange *x,
                          struct addresses *storage)
{
    line->peer = peer_of(x, storage->peer);
    if (__builtin_expect(!x->client, 1) || same_address(x->client, &x->session->peer))
        return;
    memcpy(storage->via, line->peer.at, line->peer.len);
    line->via = span_of(storage->via, line->peer.len);
    line->peer = span_of(storage->peer, format_peer(storage->peer, x->client));
}

/* Several fields are as good as none: no rule says which of them counts. */
static struct span traceparent_of(const struct session_exchange *x)
{
    if (http_request_repeats(x->request, HTTP_FIELD_TRACEPARENT))
        return span_of(NULL, 0);
    return http_traceparent_read(http_request_field(x->request, x->head, HTTP_FIELD_TRACEPARENT));
}

static struct log_access_line line_of(const struct session_exchange *x, unsigned status,
                                      uint64_t body_bytes)
{
    struct log_access_line line = {
        .request_line = x->request_line,
        .host = x->target.host,
        .status = status,
        .body_bytes = body_bytes,
        .id = x->id,
    };
    if (x->request) {
        line.referer = http_request_field(x->request, x->head, HTTP_FIELD_REFERER);
        line.user_agent = http_request_field(x->request, x->head, HTTP_FIELD_USER_AGENT);
        if (__builtin_expect(http_request_has(x->request, HTTP_FIELD_TRACEPARENT), 0))
            line.traceparent = traceparent_of(x);
    }
    const struct session_tls *tls = x->session->tls;
    if (__builtin_expect(tls != NULL, 0) && tls->established) {
        line.protocol = span_text(tls->agreed.protocol);
        line.cipher = span_text(tls->agreed.cipher);
    }
    return line;
}

void session_line_log(struct session_exchange *x, unsigned status, uint64_t body_bytes)
{
    struct log_access *log = x->thread->log;
    if (!log->bytes)
        return;
    struct addresses addresses;
    struct log_access_line line = line_of(x, status, body_bytes);
    add_addresses(&line, x, &addresses);
    log_access_add(log, &line, x->thread->wall_s);
}

static struct span move_text(struct buf *to, struct span text)
{
    const char *at = to->at + to->len;
    buf_add(to, text);
    return span_of(at, text.len);
}

struct session_line *session_line_defer(struct session_exchange *x, unsigned status)
{
    if (!x->thread->log->bytes)
        return NULL;
    struct log_access_line line = line_of(x, status, 0);
    struct addresses addresses;
    add_addresses(&line, x, &addresses);
    size_t len = line.peer.len + line.via.len + line.request_line.len + line.host.len +
                 line.referer.len + line.user_agent.len + line.traceparent.len;
    struct session_line *deferred = malloc(sizeof(*deferred) + len);
    if (!deferred) {
        log_access_add(x->thread->log, &line, x->thread->wall_s);
        return NULL;
    }
    struct buf text = buf_over(deferred->text, len);
    line.peer = move_text(&text, line.peer);
    line.via = move_text(&text, line.via);
    line.request_line = move_text(&text, line.request_line);
    line.host = move_text(&text, line.host);
    line.referer = move_text(&text, line.referer);
    line.user_agent = move_text(&text, line.user_agent);
    line.traceparent = move_text(&text, line.traceparent);
    deferred->line = line;
    return deferred;
}

void session_line_end(struct session_thread *thread, struct session_line *line, uint64_t body_bytes)
{
    if (!line)
        return;
    line->line.body_bytes = body_bytes;
    log_access_add(thread->log, &line->line, thread->wall_s);
    free(line);
}
