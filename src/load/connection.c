/* SPDX-License-Identifier: MIT */
#include "load/connection.h"

#include "os/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

static struct load_asked *asked_at(const struct load_thread *thread, struct load_user *user,
                                   unsigned index)
{
    unsigned at = user->first + index;
    return &user->asked[at < thread->plan->pipeline ? at : at - thread->plan->pipeline];
}

void load_connection_close(struct load_user *user)
{
    if (user->connection != LOAD_CONNECTION_NONE)
        close(user->fd);
    free(user->tail);
    user->tail = NULL;
    user->tail_len = 0;
    user->connection = LOAD_CONNECTION_NONE;
    user->answered = user->began = user->in_body = false;
    user->response = (struct http_response){ 0 };
    user->sent_count = 0;
    user->sent_part = 0;
}

void load_connection_finish(struct load_thread *thread, struct load_user *user)
{
    uint64_t from_ns = thread->now_ns;
    load_connection_close(user);
    if (user->mood != LOAD_ASKING) /* the user thinks already, and does not wait for this */
        return;
    load_thread_read_clock(thread);
    thread->tally.portion->outcome.closing_ns += thread->now_ns - from_ns;
}

/* ---- failing ---- */

/* Ends the first request under way, without an answer. */
static void fail_request(struct load_thread *thread, struct load_user *user, enum load_error error)
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
    load_connection_close(user);
    while (user->asked_count > 0)
        fail_request(thread, user, error);
    if (user->failures < UINT8_MAX)
        user->failures++;
    load_user_rest(thread, user);
}

/* The answer before was the last one on this connection. The other requests go on a new one. */
static void resend_on_new_connection(struct load_thread *thread, struct load_user *user)
{
    unsigned sent = user->sent_count + (user->sent_part > 0);
    load_connection_close(user);
    for (unsigned i = 0; i < user->asked_count && i < sent; i++) {
        struct load_asked *asked = asked_at(thread, user, i);
        if (asked->again) {
            load_connection_fail(thread, user, LOAD_closed_before);
            return;
        }
        asked->again = true;
        thread->tally.portion->outcome.reopened += asked->counted;
    }
    load_connection_transmit(thread, user);
}

void load_connection_lost(struct load_thread *thread, struct load_user *user, int error)
{
    if (user->asked_count == 0) { /* closed during the think time, as a server may */
        load_connection_close(user);
        return;
    }
    if (user->began)
        load_connection_fail(thread, user, error == 0 ? LOAD_closed_amid : LOAD_reset_amid);
    else if (user->answered)
        resend_on_new_connection(thread, user);
    else if (user->sent_count == 0)
        load_connection_fail(thread, user, LOAD_send_reset);
    else
        load_connection_fail(thread, user, error == 0 ? LOAD_closed_before : LOAD_reset_before);
}

/* ---- connecting ---- */

static enum load_error connect_error(int error)
{
    switch (error) {
    case ECONNREFUSED:
    case ENOENT: /* for a Unix socket */
        return LOAD_connect_refused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
        return LOAD_connect_unreachable;
    case ETIMEDOUT:
        return LOAD_connect_timeout;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return LOAD_no_descriptor;
    case EADDRNOTAVAIL:
    case EADDRINUSE:
        return LOAD_no_port;
    default:
        return LOAD_connect_other;
    }
}

/* Binds to one of the plan's source addresses, in turn. */
static int choose_source(const struct load_thread *thread, const struct load_user *user, int fd,
                         int family)
{
    const struct load_plan *plan = thread->plan;
    unsigned at = user->global % plan->source_count, tried = 0;
    while (plan->sources[at].ss_family != family && ++tried < plan->source_count)
        at = at + 1 < plan->source_count ? at + 1 : 0;
    const struct sockaddr_storage *source = &plan->sources[at];
    int on = 1; /* connect chooses the port, so that each source has all ports for each peer */
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return bind(fd, (const struct sockaddr *)source, len) < 0 ? -errno : 0;
}

/* 0, or -errno; the descriptor is closed then. */
static int open_socket(const struct load_thread *thread, struct load_user *user,
                       const struct load_target *target)
{
    int family = target->address.ss_family, on = 1;
    user->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (user->fd < 0)
        return -errno;
    int rc = 0;
    if (family != AF_UNIX) { /* a request must not wait for the ACK of an earlier one */
        (void)setsockopt(user->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (thread->plan->source_count > 0)
            rc = choose_source(thread, user, user->fd, family);
    }
    if (rc == 0 &&
        connect(user->fd, (const struct sockaddr *)&target->address, target->address_len) < 0 &&
        errno != EINPROGRESS)
        rc = -errno;
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.ptr = user };
    if (rc == 0 && epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, user->fd, &event) < 0)
        rc = -errno;
    if (rc < 0)
        close(user->fd);
    return rc;
}

static void begin_connect(struct load_thread *thread, struct load_user *user)
{
    const struct load_target *target = &thread->plan->targets[asked_at(thread, user, 0)->target];
    user->connect_ns = os_clock_now_ns();
    int rc = open_socket(thread, user, target);
    if (rc < 0) {
        load_connection_fail(thread, user, connect_error(-rc));
        return;
    }
    user->connection = LOAD_CONNECTION_CONNECTING;
    user->origin = target->origin;
    user->discards = target->address.ss_family != AF_UNIX && thread->plan->pipeline <= 1 &&
                     thread->plan->verify == LOAD_VERIFY_NOT;
}

void load_connection_connected(struct load_thread *thread, struct load_user *user)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(user->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    thread->now_ns = os_clock_now_ns();
    if (error != 0) {
        load_connection_fail(thread, user, connect_error(error));
        return;
    }
    user->connection = LOAD_CONNECTION_OPEN;
    thread->tally.portion->outcome.connects++;
    thread->tally.slice->counts.connects++;
    uint64_t took_ns = thread->now_ns - user->connect_ns;
    load_durations_add(&thread->tally.portion->outcome.connect, took_ns);
    if (user->asked_count > 0 && asked_at(thread, user, 0)->sent_ns == 0)
        thread->tally.portion->outcome.connecting_ns += took_ns; /* else part of a response */
    load_connection_transmit(thread, user);
}

/* ---- sending ---- */

/* Collects the requests that may go now, one piece each. Returns their number. */
static unsigned collect_requests(struct load_thread *thread, struct load_user *user,
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

static void note_sent(struct load_user *user, const struct iovec *pieces, size_t sent)
{
    for (; sent > 0 && sent >= pieces->iov_len; pieces++) {
        sent -= pieces->iov_len;
        user->sent_count++;
        user->sent_part = 0;
    }
    user->sent_part += (uint32_t)sent;
}

static ssize_t send_pieces(int fd, struct iovec *pieces, unsigned count)
{
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = count };
    return count == 1 ? send(fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
                      : sendmsg(fd, &message, MSG_NOSIGNAL);
}

void load_connection_transmit(struct load_thread *thread, struct load_user *user)
{
    struct iovec pieces[LOAD_PIPELINE_MAX];
    if (user->connection == LOAD_CONNECTION_OPEN && user->sent_count == 0 && user->sent_part == 0 &&
        thread->plan->targets[asked_at(thread, user, 0)->target].origin != user->origin)
        load_connection_close(user); /* the next target has another address */
    if (user->connection == LOAD_CONNECTION_NONE)
        begin_connect(thread, user);
    while (user->connection == LOAD_CONNECTION_OPEN) {
        unsigned count = collect_requests(thread, user, pieces);
        if (count == 0)
            return;
        ssize_t sent = send_pieces(user->fd, pieces, count);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            load_connection_lost(thread, user, -errno);
        if (sent < 0)
            return;
        thread->tally.portion->outcome.sent_bytes += (size_t)sent;
        note_sent(user, pieces, (size_t)sent);
    }
}
