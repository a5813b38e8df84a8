/* SPDX-License-Identifier: MIT */
#include "page/connection.h"

#include "base/duration.h"
#include <errno.h>
#include <string.h>

static void set_deadline(struct page_connection *c, enum page_phase phase, uint64_t now_ns,
                         unsigned wait_ms)
{
    c->phase = phase;
    c->due_ns = now_ns + wait_ms * DURATION_MS;
}

void page_connection_open(struct page_connection *c, int fd, struct page_tls *tls, bool guarded,
                          uint64_t now_ns)
{
    page_transport_open(&c->transport, fd, tls);
    c->guarded = guarded;
    c->request = (struct http_request){ 0 };
    c->answer = (struct page_answer){ 0 };
    c->in_len = c->sent = 0;
    set_deadline(c, PAGE_READING, now_ns, PAGE_HEAD_MS);
}

void page_connection_close(struct page_connection *c, struct page_shared *shared)
{
    shared->streams -= c->answer.stream;
    page_answer_drop(&c->answer);
    c->answer.stream = false;
    page_transport_close(&c->transport);
    explicit_bzero(c->in, sizeof(c->in));
    c->phase = PAGE_FREE;
}

short page_connection_events(const struct page_connection *c)
{
    bool sends = c->phase == PAGE_SENDING || page_transport_has_output(&c->transport);
    return sends ? POLLOUT : POLLIN;
}

bool page_connection_is_idle(const struct page_connection *c)
{
    return c->phase == PAGE_STREAMING || (c->phase == PAGE_READING && c->in_len == 0);
}

/* ---- answers ---- */

/* Whether the bytes hold a request. It is then answered. */
static bool find_request(struct page_connection *c, struct page_shared *shared, uint64_t now_ns)
{
    enum http_status status = HTTP_BAD_REQUEST;
    if (c->in_len == 0)
        return false;
    switch (http_request_parse(&c->request, span_of(c->in, c->in_len), &status)) {
    case HTTP_PARSE_MORE:
        if (c->in_len < sizeof(c->in))
            return false;
        page_answer_status(&c->answer, HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                           c->request.method == HTTP_HEAD, shared->wall_s);
        return true;
    case HTTP_PARSE_FAILED:
        page_answer_status(&c->answer, status, c->request.method == HTTP_HEAD, shared->wall_s);
        return true;
    case HTTP_PARSED:
    default:
        break;
    }
    page_answer_request(&c->answer, shared, &c->request, c->in, c->guarded, now_ns);
    shared->streams += c->answer.stream;
    c->in_len -= c->request.head_len;
    memmove(c->in, c->in + c->request.head_len, c->in_len);
    explicit_bzero(c->in + c->in_len, c->request.head_len); /* it may have held a password */
    c->request = (struct http_request){ 0 };
    return true;
}

static void begin_page_answer(struct page_connection *c, uint64_t now_ns)
{
    c->sent = 0;
    set_deadline(c, PAGE_SENDING, now_ns, PAGE_SEND_MS);
}

static void linger(struct page_connection *c, uint64_t now_ns)
{
    page_transport_end(&c->transport);
    set_deadline(c, PAGE_LINGERING, now_ns, PAGE_LINGER_MS);
}

static void end_page_answer(struct page_connection *c, uint64_t now_ns)
{
    page_answer_drop(&c->answer);
    c->answer.head_len = 0;
    if (c->answer.stream) {
        c->phase = PAGE_STREAMING;
        c->due_ns = UINT64_MAX;
    } else if (c->answer.close) {
        linger(c, now_ns);
    } else {
        set_deadline(c, PAGE_READING, now_ns, PAGE_HEAD_MS);
    }
}

/* ---- bytes ---- */

/* Receives bytes. False: the connection must close. */
static bool receive_client(struct page_connection *c, const struct page_shared *shared,
                           uint64_t now_ns)
{
    bool discard = c->phase != PAGE_READING;
    char *into = discard ? c->in : c->in + c->in_len;
    size_t room = discard ? sizeof(c->in) : sizeof(c->in) - c->in_len;
    ssize_t got = page_transport_receive(&c->transport, into, room);
    if (got == -EPROTO)
        linger(c, now_ns); /* a reset could lose the alert */
    if (got == -EPROTOTYPE) {
        page_answer_plain(&c->answer, shared->wall_s);
        begin_page_answer(c, now_ns);
    }
    if (got < 0)
        return got == -EAGAIN || got == -EPROTO || got == -EPROTOTYPE;
    if (got > 0 && !discard)
        c->in_len += (size_t)got;
    return got > 0;
}

/* Sends records that belong to no answer. False: the connection must close. */
static bool flush_client(struct page_connection *c)
{
    int rc = page_transport_flush(&c->transport);
    return rc == 0 || rc == -EAGAIN;
}

/* Sends what the kernel takes. False: the connection must close. */
static bool send_client(struct page_connection *c, uint64_t now_ns)
{
    struct page_answer *a = &c->answer;
    size_t in_head = c->sent < a->head_len ? c->sent : a->head_len, in_body = c->sent - in_head;
    struct iovec pieces[2] = {
        { a->head + in_head, a->head_len - in_head },
        { (char *)(uintptr_t)a->body.at + in_body, a->body.len - in_body },
    };
    ssize_t sent = page_transport_send(&c->transport, pieces);
    if (sent < 0)
        return sent == -EAGAIN;
    c->sent += (size_t)sent;
    if (c->sent == a->head_len + a->body.len && !page_transport_has_output(&c->transport))
        end_page_answer(c, now_ns);
    return true;
}

/* ---- in the loop ---- */

void page_connection_act(struct page_connection *c, struct page_shared *shared, short events,
                         uint64_t now_ns)
{
    bool open = now_ns < c->due_ns && (events & (POLLERR | POLLNVAL)) == 0;
    if (open && c->phase != PAGE_SENDING && (events & POLLOUT) != 0)
        open = flush_client(c);
    if (open && c->phase != PAGE_SENDING && (events & (POLLIN | POLLHUP)) != 0)
        open = receive_client(c, shared, now_ns);
    if (open && c->phase == PAGE_SENDING)
        open = send_client(c, now_ns);
    while (open && c->phase == PAGE_READING) {
        if (find_request(c, shared, now_ns)) {
            begin_page_answer(c, now_ns);
            open = send_client(c, now_ns);
        } else if (page_transport_has_input(&c->transport)) {
            open = receive_client(c, shared, now_ns);
        } else {
            break;
        }
    }
    if (!open)
        page_connection_close(c, shared);
}

void page_connection_send_event(struct page_connection *c, struct page_shared *shared,
                                uint64_t now_ns)
{
    if (c->phase != PAGE_STREAMING)
        return;
    struct page_text *event = page_numbers_get_event(&shared->numbers, c->answer.known_ns, now_ns);
    if (!event)
        return;
    c->answer.known_ns = event->upto_ns;
    c->answer.text = page_numbers_hold_text(event);
    c->answer.body = span_of(event->bytes, event->len);
    begin_page_answer(c, now_ns);
    if (!send_client(c, now_ns))
        page_connection_close(c, shared);
}
