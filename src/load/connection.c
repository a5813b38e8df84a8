/* SPDX-License-Identifier: MIT */
#include "load/connection.h"

#include "load/multiplex.h"
#include "load/socket.h"
#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct load_asked *asked_at(const struct load_thread *thread, struct load_user *user,
                                   unsigned index)
{
    unsigned at = user->first + index;
    return &user->asked[at < thread->plan->pipeline ? at : at - thread->plan->pipeline];
}

void load_connection_close(struct load_user *user)
{
    if (load_user_has_tls(user))
        load_tls_close(user);
    if (user->connection != LOAD_CONNECTION_NONE)
        close(user->fd);
    if (user->multiplex)
        load_multiplex_close(user);
    free(user->tail);
    user->tail = NULL;
    user->tail_len = 0;
    user->connection = LOAD_CONNECTION_NONE;
    user->answered = user->began = user->in_body = false;
    user->response = (struct http_response){ 0 };
    user->sent_count = 0;
    user->sent_part = 0;
}

/* Requests that were sent behind the last answer of a connection are sent again. */
static void count_pipelined(struct load_thread *thread, struct load_user *user)
{
    unsigned sent = user->sent_count + (user->sent_part > 0);
    for (unsigned i = 0; i < user->asked_count && i < sent; i++)
        thread->tally.portion->outcome.reopened += asked_at(thread, user, i)->counted;
}

void load_connection_finish(struct load_thread *thread, struct load_user *user)
{
    uint64_t from_ns = thread->now_ns;
    if (user->multiplex)
        load_multiplex_end(thread, user);
    else
        count_pipelined(thread, user);
    load_connection_close(user);
    if (user->mood != LOAD_ASKING) /* the user thinks already, and does not wait for this */
        return;
    if (user->asked_count > 0 && asked_at(thread, user, 0)->sent_ns > 0)
        return; /* part of the response to a request that is sent again */
    load_thread_read_clock(thread);
    thread->tally.portion->outcome.closing_ns += thread->now_ns - from_ns;
}

/* ---- failing ---- */

void load_connection_fail_first(struct load_thread *thread, struct load_user *user,
                                enum load_error error)
{
    struct load_asked *asked = asked_at(thread, user, 0);
    uint64_t from_ns = asked->sent_ns > 0 ? asked->sent_ns : asked->due_ns;
    thread->away_ns += thread->now_ns > from_ns ? (int64_t)(thread->now_ns - from_ns) : 0;
    load_tally_end_gap(&thread->tally, thread->now_ns, false, 1);
    if (asked->counted)
        load_tally_error(&thread->tally, error);
    user->first = (uint16_t)(user->first + 1u == thread->plan->pipeline ? 0 : user->first + 1u);
    user->asked_count--;
    if (asked->counted)
        load_thread_ended(thread);
}

void load_connection_fail(struct load_thread *thread, struct load_user *user, enum load_error error)
{
    thread->tally.portion->outcome.handshakes_failed += user->connection ==
                                                        LOAD_CONNECTION_SECURING;
    load_connection_close(user);
    while (user->asked_count > 0)
        load_connection_fail_first(thread, user, error);
    if (user->failures < UINT8_MAX)
        user->failures++;
    load_user_rest(thread, user);
}

/* The answer before was the last one on this connection. The other requests go on a new one. With
 * HTTP/1.1 that answer was the first in line, so each connection ends a request. The streams of
 * HTTP/2 end in any order: one that connections are lost with again and again has to fail. */
static void resend_on_new_connection(struct load_thread *thread, struct load_user *user)
{
    unsigned sent = user->sent_count + (user->sent_part > 0);
    load_connection_close(user);
    for (unsigned i = 0; i < user->asked_count && i < sent; i++) {
        struct load_asked *asked = asked_at(thread, user, i);
        if (asked->again && thread->plan->http2) {
            load_connection_fail(thread, user, LOAD_closed_before);
            return;
        }
        asked->again = true;
        thread->tally.portion->outcome.reopened += asked->counted;
    }
    load_connection_transmit(thread, user);
}

/* The loss of a connection of HTTP/2, with requests under way. */
static void lose_streams(struct load_thread *thread, struct load_user *user, int error)
{
    const struct load_http2 *h = &user->multiplex->http2;
    bool goaway = load_http2_got_goaway(h);
    load_multiplex_fail_begun(thread, user,
                              h->goaway_error != 0 ? LOAD_goaway
                              : error == 0         ? LOAD_closed_amid
                                                   : LOAD_reset_amid);
    if (user->asked_count == 0) {
        load_connection_close(user);
        load_user_rest(thread, user);
    } else if (user->answered) {
        resend_on_new_connection(thread, user);
    } else if (goaway) {
        load_connection_fail(thread, user, LOAD_goaway);
    } else {
        load_connection_fail(thread, user,
                             user->sent_count == 0 ? LOAD_send_reset
                             : error == 0          ? LOAD_closed_before
                                                   : LOAD_reset_before);
    }
}

void load_connection_lost(struct load_thread *thread, struct load_user *user, int error)
{
    if (user->asked_count == 0) { /* closed during the think time, as a server may */
        load_connection_close(user);
        return;
    }
    if (user->connection == LOAD_CONNECTION_SECURING)
        load_connection_fail(thread, user, LOAD_tls_closed);
    else if (thread->plan->http2)
        lose_streams(thread, user, error);
    else if (user->began)
        load_connection_fail(thread, user, error == 0 ? LOAD_closed_amid : LOAD_reset_amid);
    else if (user->answered)
        resend_on_new_connection(thread, user);
    else if (user->sent_count == 0)
        load_connection_fail(thread, user, LOAD_send_reset);
    else
        load_connection_fail(thread, user, error == 0 ? LOAD_closed_before : LOAD_reset_before);
}

/* ---- connecting ---- */

static void begin_connect(struct load_thread *thread, struct load_user *user)
{
    const struct load_target *target = &thread->plan->targets[asked_at(thread, user, 0)->target];
    user->connect_ns = os_clock_now_ns();
    if (thread->plan->http2 && !load_multiplex_prepare(thread, user)) {
        load_connection_fail(thread, user, LOAD_no_descriptor);
        return;
    }
    user->fd = load_socket_connect(thread->plan, target, user->global);
    int rc = user->fd < 0 ? user->fd : 0;
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.ptr = user };
    if (rc == 0 && epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, user->fd, &event) < 0) {
        rc = -errno;
        close(user->fd);
    }
    if (rc < 0) {
        load_connection_fail(thread, user, load_socket_error(-rc));
        return;
    }
    user->connection = LOAD_CONNECTION_CONNECTING;
    user->origin = target->origin;
    user->discards = target->address.ss_family != AF_UNIX && !target->tls && !thread->plan->http2 &&
                     thread->plan->pipeline <= 1 && thread->plan->verify == LOAD_VERIFY_NOT;
}

void load_connection_count_ready(struct load_thread *thread, struct load_user *user)
{
    if (user->asked_count > 0 &&
        asked_at(thread, user, 0)->sent_ns == 0) /* else part of a response */
        thread->tally.portion->outcome.connecting_ns += thread->now_ns - user->connect_ns;
}

void load_connection_connected(struct load_thread *thread, struct load_user *user)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(user->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    thread->now_ns = os_clock_now_ns();
    if (error != 0) {
        load_connection_fail(thread, user, load_socket_error(error));
        return;
    }
    user->connection = LOAD_CONNECTION_OPEN;
    thread->tally.portion->outcome.connects++;
    thread->tally.slice->counts.connects++;
    uint64_t took_ns = thread->now_ns - user->connect_ns;
    load_durations_add(&thread->tally.portion->outcome.connect, took_ns);
    if (thread->plan->targets[user->origin].tls) {
        load_tls_begin(thread, user);
        return;
    }
    load_connection_count_ready(thread, user);
    load_connection_transmit(thread, user);
}

/* ---- sending ---- */

/* Collects the requests that may go now, one piece each. Returns their number. */
static inline unsigned collect_requests(struct load_thread *thread, struct load_user *user,
                                        struct iovec pieces[LOAD_PIPELINE_MAX])
{
    unsigned count = 0;
    for (unsigned i = user->sent_count; i < user->asked_count; i++) {
        struct load_asked *asked = asked_at(thread, user, i);
        const struct load_target *target = &thread->plan->targets[asked->target];
        if (target->origin != user->origin)
            break;
        size_t gone = count == 0 ? user->sent_part : 0;
        /* sendmsg does not write through the pointer */
        pieces[count++] = (struct iovec){ (void *)(uintptr_t)(target->request + gone),
                                          target->request_len - gone };
        if (asked->sent_ns == 0)
            asked->sent_ns = thread->now_ns;
    }
    return count;
}

static void note_sent(struct load_thread *thread, struct load_user *user,
                      const struct iovec *pieces, size_t sent)
{
    thread->tally.portion->outcome.sent_bytes += sent;
    for (; sent > 0 && sent >= pieces->iov_len; pieces++) {
        sent -= pieces->iov_len;
        user->sent_count++;
        user->sent_part = 0;
    }
    user->sent_part += (uint32_t)sent;
}

/* Seals requests until a chunk of the wire is full or all are sealed. false: the connection is
 * lost. */
static bool seal_requests(struct load_thread *thread, struct load_user *user)
{
    struct iovec pieces[LOAD_PIPELINE_MAX];
    const struct tls_wire *wire = &user->tls->connection.wire;
    while (wire->first == wire->last && collect_requests(thread, user, pieces) > 0) {
        size_t sealed = load_tls_seal(thread, user, span_of(pieces[0].iov_base, pieces[0].iov_len));
        if (sealed == 0)
            return false;
        note_sent(thread, user, pieces, sealed);
    }
    return true;
}

/* The end of the handshake leaves in the same send as the first request. */
static void transmit_sealed(struct load_thread *thread, struct load_user *user)
{
    while (seal_requests(thread, user) && !tls_wire_is_empty(&user->tls->connection.wire))
        if (!load_tls_flush(thread, user))
            return;
}

static void transmit_plain(struct load_thread *thread, struct load_user *user)
{
    struct iovec pieces[LOAD_PIPELINE_MAX];
    for (;;) {
        unsigned count = collect_requests(thread, user, pieces);
        if (count == 0)
            return;
        ssize_t sent = load_socket_send(user->fd, pieces, count);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            load_connection_lost(thread, user, -errno);
        if (sent < 0)
            return;
        note_sent(thread, user, pieces, (size_t)sent);
    }
}

void load_connection_transmit(struct load_thread *thread, struct load_user *user)
{
    if (user->connection == LOAD_CONNECTION_OPEN && user->sent_count == 0 && user->sent_part == 0 &&
        thread->plan->targets[asked_at(thread, user, 0)->target].origin != user->origin) {
        if (user->multiplex)
            load_multiplex_end(thread, user);
        load_connection_close(user); /* the next target has another origin */
    }
    if (user->connection == LOAD_CONNECTION_NONE)
        begin_connect(thread, user);
    if (user->connection != LOAD_CONNECTION_OPEN)
        return;
    if (thread->plan->http2)
        load_multiplex_transmit(thread, user);
    else if (load_user_has_tls(user))
        transmit_sealed(thread, user);
    else
        transmit_plain(thread, user);
}
