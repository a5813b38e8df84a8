/* SPDX-License-Identifier: MIT */
#include "session/line.h"

#include "auth/basic.h"
#include "base/buf.h"
#include "http/traceparent.h"
#include "log/layout.h"
#include "session/answer.h"
#include "session/http2.h"
#include "session/pending.h"
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

static inline struct log_access_line line_of(const struct session_exchange *x, unsigned status,
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

/* ---- lines that wait ---- */

static void append_line(struct session_buffer *out, struct session_line *line)
{
    line->next = NULL;
    if (out->lines)
        out->last_line->next = line;
    else
        out->lines = line;
    out->last_line = line;
}

void session_line_log(struct session_exchange *x, unsigned status, uint64_t body_bytes)
{
    struct log_access *log = x->thread->log;
    if (!log->bytes)
        return;
    if (__builtin_expect(log->layout != NULL, 0)) {
        struct session_line *waiting = session_line_defer(x, status);
        if (!waiting)
            return;
        waiting->line.body_bytes = body_bytes;
        append_line(x->session->output, waiting);
        return;
    }
    struct addresses addresses;
    struct log_access_line line = line_of(x, status, body_bytes);
    add_addresses(&line, x, &addresses);
    log_access_add(log, &line, x->thread->wall_s);
}

static void add_fields(struct log_access_details *details, const struct session_exchange *x,
                       const struct log_layout *layout)
{
    for (uint32_t left = layout->fields; left != 0; left &= left - 1) {
        const enum http_field field = (enum http_field)__builtin_ctz(left);
        details->field[log_layout_slot(layout, field)] =
            http_request_field(x->request, x->head, field);
    }
}

/* The details of a line with a layout. `basic` is the storage of the user. */
static struct log_access_details details_of(const struct session_exchange *x,
                                            const struct log_layout *layout,
                                            struct auth_basic *basic)
{
    const uint64_t now_ns = x->thread->now_ns;
    struct log_access_details details = {
        .receive_ns = now_ns > x->began_ns ? now_ns - x->began_ns : 0,
        .waited_ns = session_pending_waited_ns(x),
        .cache = (enum log_cache)x->cache,
    };
    if (x->site && x->site->name)
        details.site = span_text(x->site->name);
    if (x->request)
        add_fields(&details, x, layout);
    if (layout->users && x->admitted &&
        auth_basic_read(http_request_field(x->request, x->head, HTTP_FIELD_AUTHORIZATION), basic))
        details.user = basic->user;
    return details;
}

static void write_waiting(struct session_thread *thread, struct session_line *line)
{
    struct log_access_details *details = line->details;
    if (!details) {
        log_access_add(thread->log, &line->line, thread->wall_s);
        return;
    }
    const uint64_t now_ns = thread->now_ns;
    details->duration_ns = now_ns > line->began_ns ? now_ns - line->began_ns : 0;
    if (details->duration_ns < details->receive_ns)
        details->receive_ns = details->duration_ns;
    log_access_add_detailed(thread->log, &line->line, details);
}

static size_t len_of_line(const struct log_access_line *line)
{
    return line->peer.len + line->via.len + line->request_line.len + line->host.len +
           line->referer.len + line->user_agent.len + line->traceparent.len;
}

static size_t len_of_details(const struct log_access_details *details)
{
    size_t len = sizeof(*details) + details->user.len;
    for (unsigned i = 0; i < LOG_FIELDS_MAX; i++)
        len += details->field[i].len;
    return len;
}

static struct span move_text(struct buf *to, struct span text)
{
    const char *at = to->at + to->len;
    buf_add(to, text);
    return span_of(at, text.len);
}

static void move_line(struct log_access_line *line, struct buf *text)
{
    line->peer = move_text(text, line->peer);
    line->via = move_text(text, line->via);
    line->request_line = move_text(text, line->request_line);
    line->host = move_text(text, line->host);
    line->referer = move_text(text, line->referer);
    line->user_agent = move_text(text, line->user_agent);
    line->traceparent = move_text(text, line->traceparent);
}

static struct log_access_details *move_details(const struct log_access_details *details,
                                               struct buf *text)
{
    struct log_access_details *moved = (void *)(text->at + text->len); /* the text begins here */
    *moved = *details;
    text->len += sizeof(*moved);
    moved->user = move_text(text, details->user);
    for (unsigned i = 0; i < LOG_FIELDS_MAX; i++)
        moved->field[i] = move_text(text, details->field[i]);
    return moved;
}

/* A copy of the line with its own text; or, without memory, NULL, and the line is written. */
static struct session_line *copy_line(struct session_thread *thread, struct session_line *line)
{
    const size_t len = len_of_line(&line->line) +
                       (line->details ? len_of_details(line->details) : 0);
    struct session_line *copy = malloc(sizeof(*copy) + len);
    if (!copy) {
        write_waiting(thread, line);
        return NULL;
    }
    copy->began_ns = line->began_ns;
    copy->line = line->line;
    struct buf text = buf_over(copy->text, len);
    copy->details = line->details ? move_details(line->details, &text) : NULL;
    move_line(&copy->line, &text);
    return copy;
}

struct session_line *session_line_defer(struct session_exchange *x, unsigned status)
{
    const struct log_access *log = x->thread->log;
    const struct log_layout *layout = log->layout;
    if (!log->bytes || (layout && !log_layout_takes(layout, status, x->id)))
        return NULL;
    struct addresses addresses;
    struct session_line line;
    line.began_ns = x->began_ns;
    line.line = line_of(x, status, 0);
    line.details = NULL;
    add_addresses(&line.line, x, &addresses);
    if (__builtin_expect(!layout, 1))
        return copy_line(x->thread, &line);
    struct auth_basic basic;
    struct log_access_details details = details_of(x, layout, &basic);
    line.details = &details;
    struct session_line *copy = copy_line(x->thread, &line);
    if (details.user.len > 0)
        auth_basic_forget(&basic);
    return copy;
}

void session_line_keep(struct session_buffer *out, struct session_answer *answer)
{
    if (!answer->line || !answer->line->details)
        return;
    answer->line->line.body_bytes = answer->body_sent;
    append_line(out, answer->line);
    answer->line = NULL;
}

void session_line_add_wait(struct session_line *line, uint64_t waited_ns)
{
    if (line->details)
        line->details->waited_ns += waited_ns;
}

void session_line_write_sent(struct session_thread *thread, struct session_buffer *out)
{
    struct session_line *next;
    for (struct session_line *line = out->lines; line; line = next) {
        next = line->next;
        write_waiting(thread, line);
        free(line);
    }
    out->lines = out->last_line = NULL;
}

void session_line_end(struct session_thread *thread, struct session_line *line, uint64_t body_bytes)
{
    if (!line)
        return;
    line->line.body_bytes = body_bytes;
    write_waiting(thread, line);
    free(line);
}
